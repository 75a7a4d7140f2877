"""Sugiyama 2010: the least-squares probabilistic classifier compared with kernel logistic regression."""

from papers._common.experiments import Experiment, Paper
from papers.lspc import error_and_time, three_classes

PAPER = Paper(
    name="lspc",
    title="M. Sugiyama, Superfast-Trainable Multi-Class Probabilistic Classifier by Least-Squares Posterior Fitting, "
    "IEICE Transactions on Information and Systems E93-D (10), 2010",
    experiments=(
        Experiment(
            name="three-classes",
            place="figures 4 to 6",
            title="three classes in the plane whose posterior is known",
            record="lspc_three_classes",
            settings=three_classes.PlaneSettings,
            run=three_classes.run,
            quick={"runs": 2},
        ),
        Experiment(
            name="figures",
            place="figures 7 and 8",
            title="error and training time as the rows and the classes grow",
            record="lspc_figures",
            settings=error_and_time.FigureSettings,
            run=error_and_time.run,
            quick={"runs": 1, "sizes": (100, 500), "rows": 100, "class_counts": 2},
            needs=tuple(error_and_time.CLASSES),
            any_of=True,
        ),
    ),
)
