"""The public names of `noren.report` and where each lives: for type checkers, and at run time."""

from noren.report.attacks import attack_content as attack_content
from noren.report.attacks import final as final
from noren.report.attacks import headline as headline
from noren.report.attacks import shown_scenarios as shown_scenarios
from noren.report.page import Page as Page
from noren.report.page import holder_page as holder_page
from noren.report.page import make_report as make_report
