"""The names of `noren.report`, for type checkers: at run time they are loaded when first used."""

from noren.report.page import Page as Page
from noren.report.page import holder_page as holder_page
from noren.report.page import make_report as make_report
