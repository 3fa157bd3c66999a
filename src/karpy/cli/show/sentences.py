"""How happenings are put into words."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from karpy.cli.tables import count_of, dollars, few_of
from karpy.core.disruption.rollout import VALIDATION_DELAY
from karpy.model.verdicts import Verdict

_NAMED_MAX: Final = 3
