"""The 17 regular languages of Bhattamishra et al. (2020), as bases of task `next-symbols`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PATTERNS = {
    "(aa)*": "(aa)*",
    "(aaaa)*": "(aaaa)*",
    "(abab)*": "(abab)*",
    "aa*bb*cc*dd*ee*": "aa*bb*cc*dd*ee*",
    "{a,b}*d{b,c}*": "[ab]*d[bc]*",
    "{0,1,2}*02*": "[012]*02*",
}
"""Regular expressions of the languages that no other task defines, by their names in the paper."""

LANGUAGES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {f"Tomita {index}": {"name": "tomita", "index": index} for index in range(1, 8)}
    | {f"D_{depth}": {"name": "bounded-dyck", "depth": depth} for depth in (2, 3, 4, 12)}
    | {name: {"name": "regex", "pattern": pattern} for name, pattern in PATTERNS.items()}
)
"""The languages by name; ``make_task("next-symbols", base=LANGUAGES["D_12"], with_end=True)`` makes a task.

`with_end` is needed for the languages whose set of next symbols never changes, such as Tomita 5 and (aa)*.

Source: Bhattamishra et al., "On the Ability and Limitations of Transformers to Recognize Formal Languages" (arXiv
    2009.11264), section 5 and appendix.
"""
