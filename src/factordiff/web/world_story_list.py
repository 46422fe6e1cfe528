"""The stories of worlds: four tasks in a mosaic, prose and code in a text."""

from __future__ import annotations

from factordiff.web.stories import Story, StoryRun
from factordiff.web.world_stories import StoryMosaic, StoryText

QUARTERS = ("mosaic-1", "mosaic-2", "mosaic-3", "mosaic-4")
FEW = "confidence:12"  # a step on a mosaic is sixteen passes
PROSE, CODE = "text-prose", "text-code"
# Written for the story, in lines that fit on a phone.
PASSAGES = {
    "mean": '''def mean(values):
    """Compute the average of the values.

    Note that this does not work if there
    are no values in the list.
    """
    if len(values) == 0:
        raise ValueError("no values")
    return sum(values) / len(values)
''',
    "delete": '''def delete(self, key):
    """Delete an entry from the table.

    This will raise an exception if the key
    could not be found.
    """
    if key in self._data:
        del self._data[key]
    else:
        raise KeyError(key)
''',
}

MOSAIC = Story(
    "mosaic",
    "Four tasks in one mosaic",
    "Each quarter is a task with its own examples. Each of four models was trained on one; nobody says which.",
    tuple(map(StoryMosaic, (6, 4, 8, 12))),
    (
        StoryRun("The surest decides", experts=QUARTERS, method="routing", reveal=FEW),
        StoryRun("Evidence decides", experts=QUARTERS, method="demonstrations", reveal=FEW),
    ),
    "01",
    {
        "01": "The surest gets {quarters 0} of 4 quarters right: a model can be sure of what it never learned. Who "
        "predicts a quarter’s examples decides it: all right, {owned 1} of 4 by the one trained on the task.",
        "11": "Both are right. Here the surest is also the one who knows.",
        "10": "The surest is right. Evidence gets {quarters 1} of 4 quarters right.",
        "00": "The surest gets {quarters 0} of 4 quarters right, evidence {quarters 1}.",
    },
    ((0, 1),),
    both_decide=True,
)
TEXT = Story(
    "prose-and-code",
    "Prose and code in one file",
    "Some characters of a Python file are hidden. One model has read only prose, the other only code.",
    tuple(StoryText(name, text) for name, text in PASSAGES.items()),
    (
        StoryRun("Prose alone", experts=(PROSE,), method="single"),
        StoryRun("Code alone", experts=(CODE,), method="single"),
        StoryRun("Together", experts=(PROSE, CODE), method="soft-routing"),
    ),
    "001",
    {
        "00": "Alone, each errs. Of the {wrong 0} wrong characters of prose, {wrong 0 of 1} are in code. "
        "Of the {wrong 1} of code, {wrong 1 of 0} are in prose.",
        "001": "Together they are right: the surer one counts for more, and where both are as sure they share.",
        "000": "Together {wrong 2} are wrong: here the surer one was not always right.",
        "01": "Code is right alone, so there is little left for prose to add.",
        "10": "Prose is right alone, so there is little left for code to add.",
    },
    ((0, 1), (2,)),
    both_decide=True,
)
