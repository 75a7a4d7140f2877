"""Simm, Sugiyama and Kato 2011: the least-squares probabilistic classifier for many tasks."""

from papers._common.experiments import Experiment, Paper
from papers.lspc_mt import comparison
from papers.lspc_mt.comparison import TABLE_1, TABLE_2, TABLE_3, TABLE_4

_ONCE = {"runs": 1, "klr_runs": 1, "default_runs": 1, "slow_runs": 0, "klr_points": 3}

PAPER = Paper(
    name="lspc-mt",
    title="J. Simm, M. Sugiyama, T. Kato, Computationally Efficient Multi-task Learning with Least-squares "
    "Probabilistic Classifiers, IPSJ Transactions on Computer Vision and Applications 3, 2011",
    experiments=(
        Experiment(
            name="umist",
            place="tables 1 and 2, figure 2",
            title="a woman against a man, four tasks: accuracy and time",
            record="multi_task_tables_umist",
            settings=comparison.TaskSettings,
            run=comparison.run_umist,
            usual={"runs": 200, "sizes": (3, 4, 5, 6, 7, 8)},
            quick={**_ONCE, "sizes": (3,)},
            needs=("umist",),
            printed={"table 1": TABLE_1, "table 2": TABLE_2},
        ),
        Experiment(
            name="landmine",
            place="tables 3 and 4, figure 3",
            title="17 minefields: area under the curve and time",
            record="multi_task_tables_landmine",
            settings=comparison.MineSettings,
            run=comparison.run_landmine,
            quick={**_ONCE, "sizes": (20,)},
            needs=("landmine",),
            printed={"table 3": TABLE_3, "table 4": TABLE_4},
        ),
        Experiment(
            name="made",
            place="not in the paper",
            title="17 synthetic tasks, two of them reversed, in place of the minefields",
            record="multi_task_tables_made",
            settings=comparison.TaskSettings,
            run=comparison.run_made,
            usual={"runs": 3, "sizes": (20, 35), "default_runs": 3, "klr_runs": 3, "slow_runs": 0, "klr_points": 3},
            quick={**_ONCE, "sizes": (20,)},
            role="stand-in",
        ),
    ),
    remark="Both experiments of the paper are on real data; synthetic tasks replace missing data.",
)
