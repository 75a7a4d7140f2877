"""Nam, Hachiya and Sugiyama 2012: the least-squares probabilistic classifier for many labels."""

from papers._common.experiments import Experiment, Paper
from papers.ml_lspc import comparison, solving
from papers.ml_lspc.tables import SECTION_6_2

PAPER = Paper(
    name="ml-lspc",
    title="H. Nam, H. Hachiya, M. Sugiyama, Computationally Efficient Multi-label Classification by Least-Squares "
    "Probabilistic Classifiers, 2012",
    experiments=(
        Experiment(
            name="toy",
            place="figure 1a",
            title="rotated boundaries: Hamming loss against the number of labels",
            record="label_tables_toy",
            settings=comparison.ToySettings,
            run=comparison.run_toy,
            usual={"runs": 2, "insdif_labels": 50},
            quick={"runs": 1, "more_runs": 0, "variant_runs": 0, "rows": 300, "test_rows": 1000, "labels": (10, 20)},
        ),
        Experiment(
            name="solve",
            place="figure 1b",
            title="rotated boundaries: seconds of one solve against the number of labels",
            record="label_tables_solve",
            settings=solving.SolveSettings,
            run=solving.run,
            quick={"rows": 500, "labels": (10, 50), "direct_rows": 100, "direct_labels": (10,), "insdif_labels": 10},
        ),
        Experiment(
            name="enron",
            place="section 6.2",
            title="Enron's messages: F-measure and time",
            record="label_tables_enron",
            settings=comparison.EnronSettings,
            run=comparison.run_enron,
            quick={"runs": 1, "more_runs": 0, "variant_runs": 0},
            needs=("enron",),
            printed={"section 6.2": SECTION_6_2},
        ),
    ),
)
