"""Every English text of the studio; a translation is a folder with the same names.

Constants for what is always the same, functions where a number or a name stands in it; a function may choose between
forms of a word, and does nothing else. Texts of the frame and of the holder's five steps are read from here, those of
the other two people from `recipient` and `auditor`. Pages hold no words of their own (a test reads them). Texts that
models and methods say of themselves (promises, descriptions of fields) live with them.
"""

from noren_studio.texts.choose import *  # noqa: F403
from noren_studio.texts.columns import *  # noqa: F403
from noren_studio.texts.frame import *  # noqa: F403
from noren_studio.texts.release import *  # noqa: F403
from noren_studio.texts.requirements import *  # noqa: F403
from noren_studio.texts.table import *  # noqa: F403
