"""Xu, An, Qiao and Zhu 2014: least-squares support vector machines for many tasks."""

from papers._common.experiments import Experiment, Paper
from papers.mtls_svm import dermatology, school
from papers.mtls_svm.tables import TABLE_2, TABLE_3

PAPER = Paper(
    name="mtls-svm",
    title="S. Xu, X. An, X. Qiao, L. Zhu, Multi-task least-squares support vector machines, Multimedia Tools and "
    "Applications 71, 2014",
    experiments=(
        Experiment(
            name="school",
            place="table 2",
            title="exam scores of 139 schools: explained variance",
            record="lssvm_tables_school",
            settings=school.SchoolSettings,
            run=school.run_school,
            quick={"runs": 1, "inputs": ("standardised",)},
            needs=("school",),
            printed={"table 2": TABLE_2},
        ),
        Experiment(
            name="dermatology",
            place="table 3",
            title="six skin diseases: error",
            record="lssvm_tables_dermatology",
            settings=dermatology.SkinSettings,
            run=dermatology.run,
            quick={"runs": 1, "inputs": ("raw", "with age")},
            needs=("dermatology",),
            printed={"table 3": TABLE_3},
        ),
        Experiment(
            name="similar",
            place="not in the paper",
            title="every fifth school, with similarities of the schools learned",
            record="lssvm_tables_similar",
            settings=school.SchoolSettings,
            run=school.run_similar,
            usual={"runs": 3, "inputs": ("standardised",)},
            quick={"runs": 1, "schools": 40},
            needs=("school",),
            role="beyond",
        ),
        Experiment(
            name="made",
            place="not in the paper",
            title="synthetic linear tasks, in place of the schools",
            record="lssvm_tables_made",
            settings=school.SplitSettings,
            run=school.run_made,
            usual={"runs": 3, "inputs": ("standardised",)},
            quick={"runs": 1},
            role="stand-in",
        ),
    ),
    remark="Both experiments of the paper are on real data; synthetic tasks replace missing data.",
)
