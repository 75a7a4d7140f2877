"""What the numbers mean, and when they do not hold."""

from __future__ import annotations

from typing import Any

HELDOUT = (
    "Every row was predicted by a model that had not seen it: leastwise computes what the fit would say of a "
    "training row without that row (or its fold). The width of the kernel, the ridge, the sharing and the "
    "calibration were chosen by these same predictions, which flatters a little. For a figure to publish, write "
    "the report with rows of its own: write_report(model, path, X=X_test, y=y_test)."
)
GIVEN = "The figures are of rows that were given for this report. They are fair only if the model has not seen them."
CLASSES = [
    ("Errors", "Share of rows whose most probable class is not the true one."),
    (
        "Log-loss",
        "Mean of minus the logarithm of the probability of what was true. 0 is perfect; a model that only knows the "
        "class shares has their entropy.",
    ),
    ("Brier score", "Mean squared distance between the probabilities and the truth, from 0 to 2."),
    (
        "ECE",
        "Expected calibration error: how far, on average, what is said lies from how often it is true. What chance "
        "alone would make of it is taken off, so 0 means: no more than chance.",
    ),
    (
        "Intervals",
        "95% intervals. They take rows as independent, or groups of rows where the model was told groups, and know "
        "nothing of data that change.",
    ),
    (
        "At most",
        "An upper bound of the errors among what is decided, true with the confidence beside it for a threshold "
        "that was fixed before. Moving the slider until a bound looks good uses the same rows twice; "
        "Abstaining(max_error=...) chooses a threshold with a guarantee.",
    ),
    (
        "When none of this holds",
        "If new rows come from elsewhere, from another time, or with other class shares, all of these figures may "
        "be wrong. leastwise.shift estimates new class shares; the trust of a row says how far from the training "
        "rows it is.",
    ),
]
VALUES = [
    ("RMSE and MAE", "Root of the mean squared error, and mean of the absolute error, in the unit of the target."),
    ("R²", "Share of the variance that is explained: 1 is perfect, 0 is no better than the mean."),
    (
        "Coverage",
        "How often intervals hold the true value. For held-out rows the width comes from the other half of the "
        "rows; for rows that were given, from predict_interval. The coverage is that of all rows together: it may "
        "be lower in one task, or for large values.",
    ),
    CLASSES[4],
    (
        "When none of this holds",
        "If new rows come from elsewhere, or from another time, all of these figures may be wrong.",
    ),
]


def notes(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Words and what they mean."""
    first = ("Where the figures come from", HELDOUT if data["source"] == "heldout" else GIVEN)
    told = VALUES if data["kind"] == "values" else CLASSES
    if data["kind"] == "labels":
        told = [("Errors", "Share of known labels, over all rows, that are decided wrongly."), *told[1:]]
        several = (
            "Labels of a row",
            "A row is one witness: intervals and bounds of all labels together count rows, not labels.",
        )
        told = [*told[:-1], several, told[-1]]
    return [first, *told]
