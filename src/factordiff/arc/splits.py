"""The splits of a task's 1,000 instances: 760 to train on, 40 to choose by, 200 to test.

The paper trains on 800 and tests on 200; validation is taken out of the 800. Nothing but the 760 is ever trained
on or shown as a demonstration.
"""

from __future__ import annotations

TRAIN = range(760)
VALIDATION = range(760, 800)
FIT, HELD = range(760, 790), range(790, 800)  # of validation: what is fitted on the 30 is measured on the 10
TEST = range(800, 1_000)
VALIDATION_AND_TEST = range(VALIDATION.start, TEST.stop)
EVALUATION_FRAMES = 3
