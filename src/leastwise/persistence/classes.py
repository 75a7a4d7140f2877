"""All classes that a file may hold: a line for each.

Names are what files say and never change; paths may. To add a class, add a line, and a fixture that holds it
(``tests/fixtures/make_model_files.py``).
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from leastwise.persistence import checks
from leastwise.persistence.registry import Entry

#: Attributes of estimators that keep their precision,
EXACT = (
    "classes_",
    "tasks_",
    "labels_",
    "class_prior_",
    "unit_",
    "offset_",
    "threshold_",
    "cv_results_",
    "moments_",
    "kept_",
)
#: and those that predictions do without. They tell how the model came about, and make sets, intervals and influences.
REPORT = (
    *("heldout_scores_", "heldout_decision_", "heldout_proba_", "heldout_prediction_", "heldout_rows_"),
    *("stranger_scores_", "cv_results_", "learned_", "residuals_", "risk_coverage_", "relation_", "tie_"),
    *("neighbourhood_", "moments_", "kept_"),
)


def model(name: str, module: str, **more: Any) -> Entry:
    """An estimator of this package."""
    return Entry(name, f"leastwise.{module}:{name}", exact=EXACT, report=REPORT, **more)


def tuned(name: str, module: str) -> Entry:
    """An estimator that works in so many jobs as its user says, not as a file does."""
    return model(name, module, skip=("n_jobs",), check=checks.check_model)


def part(name: str, path: str, **more: Any) -> Entry:
    """A part of an estimator of this package."""
    return Entry(name, f"leastwise.{path}", **more)


def foreign(module: str, *names: str, **more: Any) -> list[Entry]:
    """Classes of scikit-learn."""
    return [Entry(f"sklearn.{name}", f"sklearn.{module}:{name}", **more) for name in names]


def _neighbors(cls: type, state: dict[str, Any]) -> Any:
    """Neighbours are searched for in a tree, which is made again from the rows."""
    found = cls(**{name: state[name] for name in signature(cls).parameters if name in state})
    return found.fit(state["_fit_X"]) if "_fit_X" in state else found


ESTIMATORS = [
    tuned("LSPC", "estimators.lspc"),
    tuned("LSSVC", "estimators.lssvm"),
    tuned("LSSVR", "estimators.lssvm"),
    tuned("KernelLogisticRegression", "estimators.klr"),
    tuned("MultiLabelLSPC", "estimators.multi_label"),
    tuned("MultiTaskLSPC", "estimators.multi_task"),
    tuned("MultiTaskKernelLogisticRegression", "estimators.multi_task_klr"),
    tuned("MultiTaskLSSVC", "estimators.multi_task_lssvm"),
    tuned("MultiTaskLSSVR", "estimators.multi_task_lssvm"),
    Entry("Abstaining", "leastwise.estimators.abstaining:Abstaining", exact=True, report=REPORT),
    model("Recalibrated", "calibration.recalibrated"),
    Entry("BMTLRegressor", "leastwise.baselines.bmtl:BMTLRegressor", exact=True),
    model("InsDif", "baselines.insdif"),
    model("MLkNN", "baselines.ml_knn", check=checks.check_labels_known),
    model("MTLFeatClassifier", "baselines.mtl_feat"),
    model("MTLFeatRegressor", "baselines.mtl_feat"),
    model("RMTLClassifier", "baselines.rmtl"),
    model("RMTLRegressor", "baselines.rmtl"),
    Entry("TableModel", "leastwise.tables.model:TableModel", exact=True, report=("heldout_",)),
    Entry("TableEncoder", "leastwise.tables.encoder:TableEncoder", exact=True),
    Entry("StratifiedTaskKFold", "leastwise.model_selection:StratifiedTaskKFold"),
    Entry("StratifiedLabelKFold", "leastwise.model_selection:StratifiedLabelKFold"),
]
PARTS = [
    *(
        part(f"kernel.{name}", f"kernels:{name}")
        for name in ("RBF", "Laplace", "Linear", "Scaled", "Poly", "Sigmoid", "Precomputed", "Sum")
    ),
    *(part(f"calibrator.{name}", f"probability:{name}") for name in ("ClipNormalise", "Blend", "Isotonic", "Signed")),
    *(
        part(f"calibrator.{name}", f"labels.probability:{name}", check=checks.check_starts)
        for name in ("LabelClip", "LabelBlend", "LabelIsotonic")
    ),
    part("calibrator.Softmax", "selection.refits:Softmax"),
    part("calibrator.Reach", "reach:Reach"),
    *(
        part(f"recalibrator.{name}", f"calibration.families:{name}", exact=True)
        for name in ("Setting", "Unchanged", "Linear", "OneVersusRest", "Steps")
    ),
    part("recalibrator.Layout", "calibration.reading:Layout", exact=True),
    part("tasks.Tasks", "tasks:Tasks", skip=("_place",)),
    part("tasks.Tie", "coupling:Tie"),
    part("tasks.Shared", "coupling:Shared"),
    part("tasks.Pairwise", "coupling:Pairwise"),
    part("tasks.DualForm", "task_fitting:DualForm"),
    part("tasks.PrimalForm", "task_fitting:PrimalForm"),
    part("tasks.Scores", "baselines._features:TaskScores"),
    part("labels.Labels", "labels.encoding:Labels", exact=True),
    part("heldout.HeldRows", "evidence:HeldRows"),
    part("heldout.Learned", "influence:Learned"),
    part("heldout.LabelLearned", "label_influence:LabelLearned"),
    part("heldout.Tied", "heldout.labels:Tied"),
    part("heldout.Family", "heldout.labels:Family"),
    part("heldout.Modes", "linalg.modes:Modes"),
    part("heldout.Neighbourhood", "familiarity:Neighbourhood"),
    part("heldout.Residuals", "estimators._regressor:Residuals", exact=True, skip=("inverse", "same")),
    part("heldout.Centring", "centring:Centring", exact=True),
    part("heldout.RiskCoverage", "risk:RiskCoverage", exact=True),
    part("streams.Moments", "linalg.moments:Moments", exact=True, check=checks.check_moments),
    part("streams.Whitening", "linalg.whitening:Whitening", exact=True, check=checks.check_whitening),
    part("streams.Kept", "streaming.kept:Kept", exact=True, check=checks.check_kept),
    part("tables.Column", "tables.columns:Column", exact=True),
    part("search.Outcome", "selection.trial:Outcome", exact=True),
    part("search.Entry", "selection.diary:Entry", exact=True),
    part("search.Step", "selection.diary:Step", exact=True),
]
SKLEARN = [
    *foreign("pipeline", "Pipeline", skip=("memory",), check=checks.check_pipeline),
    *foreign("pipeline", "FeatureUnion", skip=("n_jobs",), check=checks.check_jobs),
    *foreign("compose", "ColumnTransformer", skip=("n_jobs",), check=checks.check_jobs),
    *foreign("compose", "TransformedTargetRegressor", "make_column_selector"),
    *foreign("preprocessing", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer"),
    *foreign("preprocessing", "Binarizer", "FunctionTransformer", "KBinsDiscretizer", "OrdinalEncoder"),
    *foreign("preprocessing", "PowerTransformer", "QuantileTransformer", "LabelEncoder"),
    *foreign("preprocessing", "OneHotEncoder", check=checks.check_encoder),
    *foreign("preprocessing", "PolynomialFeatures", check=checks.check_polynomial),
    *foreign("impute", "SimpleImputer", "MissingIndicator"),
    *foreign("decomposition", "PCA", "TruncatedSVD"),
    *foreign("feature_selection", "VarianceThreshold", "SelectKBest", "SelectPercentile"),
    *foreign("feature_selection", "SelectFpr", "SelectFdr", "SelectFwe"),
    *foreign("model_selection", "KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold", "LeaveOneOut"),
    *foreign("model_selection", "LeaveOneGroupOut", "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit"),
    *foreign(
        "neighbors", "NearestNeighbors", skip=("_tree", "n_jobs"), check=checks.check_neighbors, build=_neighbors
    ),
    *foreign("svm", "SVC", "SVR", check=checks.check_machine),
]
ENTRIES = [*ESTIMATORS, *PARTS, *SKLEARN]
