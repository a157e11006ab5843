"""The names of `noren.report`, for type checkers: at run time they are loaded when first used."""

from noren.report.gains import attack_content as attack_content
from noren.report.gains import final as final
from noren.report.gains import headline as headline
from noren.report.gains import shown_scenarios as shown_scenarios
from noren.report.page import Page as Page
from noren.report.page import holder_page as holder_page
from noren.report.page import make_report as make_report
