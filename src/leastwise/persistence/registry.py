"""The registry of classes that may stand in a model file.

A file refers to classes by names of its own, which do not change when a module moves or a class is renamed. Nothing
but registered classes is imported or built. To add a class of leastwise, add a line to one of the lists below, and a
fixture that contains it (``tests/fixtures/make_model_files.py``). A class of another package is registered at run
time, before saving and before loading::

    from leastwise.persistence import registry

    registry.register(MyCalibrator, "mypackage.MyCalibrator")

Kernels that are registered by name (:func:`leastwise.problem.kernels.register_kernel`) need no entry here: the kernel
"cauchy" is ``kernel.cauchy`` in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from leastwise.persistence import checks
from leastwise.persistence.container import FileError
from leastwise.problem.inputs import SCALES
from leastwise.problem.kernels import KERNELS

State = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A registered class.

    Attributes
    ----------
    name : str
        Its name in files, for ever.
    location : str or type
        ``module:Class``, imported when it is needed, or the class itself.
    estimator : bool
        True if it is an estimator, not a part of one.
    version : int
        Version of its attributes. Increase it when their meaning changes, and add a migration.
    migrations : mapping of int to callable
        From the attributes of that version to those of the next. (New fields of dataclasses that have a default, and
        new parameters of estimators, need none.)
    skip : tuple of str
        Attributes that are not stored because they can be recomputed, or depend on the machine.
    report : tuple of str
        Attributes that ``keep="predict"`` leaves out.
    exact : bool or tuple of str
        Attributes that keep their precision with ``dtype="float32"``; True for all. Parameters always do.
    check : callable, optional
        Called with the attributes before the object is built; raises a FileError if compiled code would not check
        them.
    build : callable, optional
        Called with the class and the attributes to build the object, instead of the default.
    """

    name: str
    location: str | type
    estimator: bool = False
    version: int = 1
    migrations: Mapping[int, Callable[[State], State]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    exact: bool | tuple[str, ...] = ()
    check: Callable[[State], None] | None = None
    build: Callable[[type, State], Any] | None = None

    @property
    def class_name(self) -> str:
        """The name of the class in Python."""
        return self.location.split(":")[1] if isinstance(self.location, str) else self.location.__name__

    @property
    def cls(self) -> type:
        """The class; its module is imported if necessary."""
        if isinstance(self.location, type):
            return self.location
        module, name = self.location.split(":")
        return getattr(import_module(module), name)

    @property
    def from_sklearn(self) -> bool:
        """True if the class is one of scikit-learn's."""
        return self.name.startswith("sklearn.")


#: All registered classes, by their names in files.
ENTRIES: dict[str, Entry] = {}


def register(cls: type | str, name: str, **options: Any) -> None:
    """Allow a class in model files.

    Parameters
    ----------
    cls : type or str
        The class, or ``module:Class``, which is imported when it is needed.
    name : str
        Its name in files. Use a prefix of your own, such as ``"mypackage.MyKernel"``.
    **options
        Fields of :class:`Entry`, such as ``exact=True``, ``version=2`` or ``check=function``.
    """
    estimator = options.pop("estimator", isinstance(cls, type) and hasattr(cls, "get_params"))
    entry = Entry(name, cls, estimator, **options)
    known = ENTRIES.get(name)
    if known is not None and _qualified_name(known) != _qualified_name(entry):  # else a module that was reloaded
        raise ValueError(f"The name {name!r} is already registered for {_qualified_name(known)}: use another name.")
    elsewhere = [entry.name for entry in _registered_elsewhere()]
    if isinstance(cls, type) and (other := find(cls)) is not None and other.name not in (name, *elsewhere):
        raise ValueError(f"{cls.__qualname__} is already registered under the name {other.name!r}.")
    ENTRIES[name] = entry


def _qualified_name(entry: Entry) -> str:
    place = entry.location
    return place if isinstance(place, str) else f"{place.__module__}:{place.__qualname__}"


def find(cls: type) -> Entry | None:
    """The entry of a class; None if it is not registered. Only modules with a class of that name are imported."""
    same_name = [entry for entry in [*ENTRIES.values(), *_registered_elsewhere()] if entry.class_name == cls.__name__]
    return next((entry for entry in same_name if entry.cls is cls), None)


def find_name(name: str) -> Entry | None:
    """The entry of a name in files; None if it is not registered."""
    return ENTRIES.get(name) or next((entry for entry in _registered_elsewhere() if entry.name == name), None)


def _registered_elsewhere() -> list[Entry]:
    """Entries of kernels and scales that other packages registered by name; those of leastwise are listed below."""
    named: list[tuple[str, type]] = [(f"kernel.{name}", cls) for name, cls in KERNELS.items()]
    named += [(f"inputs.{name}", cls) for name, cls in SCALES.items()]
    return [Entry(name, cls) for name, cls in named if not cls.__module__.startswith("leastwise.")]


def registered_names(estimators: bool = False) -> str:
    """All names in the registry, or those of estimators alone, grouped by prefix: for error messages."""
    groups: dict[str, list[str]] = {}
    for entry in ENTRIES.values():
        if entry.estimator or not estimators:
            prefix, _, short = entry.name.rpartition(".")
            groups.setdefault(prefix, []).append(short)
    return "; ".join((f"{prefix}: " if prefix else "") + ", ".join(names) for prefix, names in groups.items())


# ---------------------------------------------------- objects and their attributes


def attributes(entry: Entry, obj: Any) -> State:
    """The attributes of an object that are stored: the fields of a dataclass, else ``vars``."""
    names = [f.name for f in fields(obj)] if is_dataclass(obj) else list(vars(obj))
    return {name: getattr(obj, name) for name in names if name not in entry.skip}


def exact_names(entry: Entry, obj: Any) -> set[str]:
    """Attributes that keep their precision with ``dtype="float32"``."""
    if entry.exact is True or entry.from_sklearn:
        return set(attributes(entry, obj))
    return {*(entry.exact or ()), *(() if is_dataclass(obj) else parameter_defaults(type(obj)))}


def parameter_defaults(cls: type) -> State:
    """The parameters of ``__init__`` with their defaults."""
    init: Any = getattr(cls, "__init__")  # noqa: B009
    parameters = [] if init is object.__init__ else list(signature(init).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)}


def migrate(entry: Entry, version: Any, state: State) -> State:
    """Bring attributes of an older version up to date."""
    if type(version) is not int or version < 1:
        raise FileError(f"{entry.name} has the invalid version {version!r}")
    if version > entry.version:
        raise FileError(
            f"{entry.name} has version {version}, and this leastwise reads versions up to {entry.version}: the file "
            "was written by a newer one. Upgrade leastwise to read it"
        )
    for old in range(version, entry.version):
        state = entry.migrations[old](state)
    return state


def build(entry: Entry, state: State) -> Any:
    """Build an object from its attributes. No code of the class runs, except ``__init__`` of dataclasses."""
    cls = entry.cls
    for name in state:
        if not name.isidentifier() or name.startswith("__") or callable(getattr(cls, name, None)):
            raise FileError(f"{entry.name} cannot have an attribute {name[:80]!r}")
    if entry.check is not None:
        entry.check(state)
    if entry.build is not None:
        return entry.build(cls, state)
    if is_dataclass(cls):
        return cls(**state)
    defaults = {name: value for name, value in parameter_defaults(cls).items() if value is not Parameter.empty}
    obj: Any = object.__new__(cls)
    vars(obj).update({**defaults, **state})
    return obj


def _rebuild_neighbors(cls: type, state: State) -> Any:
    """The search tree is not stored; it is fitted again to the same rows."""
    neighbors = cls(**{name: state[name] for name in signature(cls).parameters if name in state})
    return neighbors.fit(state["_fit_X"]) if "_fit_X" in state else neighbors


# ------------------------------------------------------------- leastwise: estimators

#: Attributes of estimators that keep their precision,
EXACT = (
    *("classes_", "tasks_", "labels_", "class_prior_", "unit_", "offset_", "threshold_", "cv_results_"),
    *("moments_", "kept_"),
)
#: and those that are not needed for predictions: search results, and what sets, intervals and influence need.
REPORT = (
    *("heldout_scores_", "heldout_decision_", "heldout_proba_", "heldout_prediction_", "heldout_rows_"),
    *(
        "unseen_task_scores_",
        "cv_results_",
        "training_record_",
        "residuals_",
        "risk_coverage_",
        "relation_",
        "coupling_matrix_",
    ),
    *("neighbourhood_", "moments_", "kept_"),
)


def _estimator(name: str, module: str, **options: Any) -> None:
    options = {"exact": EXACT, "report": REPORT, **options}
    register(f"leastwise.{module}:{name}", name, estimator=True, **options)


def _kernel_estimator(name: str, module: str) -> None:
    _estimator(name, module, skip=("n_jobs",), check=checks.check_model)


_kernel_estimator("LSPC", "estimators.lspc")
_kernel_estimator("LSSVC", "estimators.lssvm")
_kernel_estimator("LSSVR", "estimators.lssvm")
_kernel_estimator("KernelLogisticRegression", "estimators.klr")
_kernel_estimator("MultiLabelLSPC", "estimators.multi_label")
_kernel_estimator("MultiTaskLSPC", "estimators.multi_task")
_kernel_estimator("MultiTaskLSSVC", "estimators.multi_task_lssvm")
_kernel_estimator("MultiTaskLSSVR", "estimators.multi_task_lssvm")
_kernel_estimator("MultiTaskKernelLogisticRegression", "estimators.multi_task_klr")
_estimator("Abstaining", "estimators.abstaining", exact=True)
_estimator("Recalibrated", "estimators.recalibrated")
_estimator("TableModel", "tables.model", exact=True, report=("heldout_",))
_estimator("TableEncoder", "tables.encoder", exact=True, report=())
_estimator("BMTLRegressor", "baselines.bmtl", exact=True, report=())
_estimator("InsDif", "baselines.insdif")
_estimator("MLkNN", "baselines.ml_knn", check=checks.check_n_labels)
_estimator("MTLFeatClassifier", "baselines.mtl_feat")
_estimator("MTLFeatRegressor", "baselines.mtl_feat")
_estimator("RMTLClassifier", "baselines.rmtl")
_estimator("RMTLRegressor", "baselines.rmtl")

# ------------------------------------------------------------------ leastwise: parts


def _part(name: str, location: str, **options: Any) -> None:
    register(f"leastwise.{location}", name, **options)


_part("kernel.RBF", "problem.kernels:RBF")
_part("kernel.Laplace", "problem.kernels:Laplace")
_part("kernel.Linear", "problem.kernels:Linear")
_part("kernel.ScaledLinear", "problem.kernels:Scaled")
_part("kernel.Poly", "problem.kernels:Poly")
_part("kernel.Sigmoid", "problem.kernels:Sigmoid")
_part("kernel.Precomputed", "problem.kernels:Precomputed")
_part("kernel.Sum", "problem.kernels:Sum")
_part("calibrator.ClipNormalise", "calibration.calibrators:ClipNormalise")
_part("calibrator.Blend", "calibration.blend:Blend")
_part("calibrator.Isotonic", "calibration.calibrators:Isotonic")
_part("calibrator.Signed", "calibration.calibrators:Signed")
_part("calibrator.Softmax", "solvers.newton:Softmax")
_part("calibrator.LabelClip", "calibration.label_calibrators:LabelClip", check=checks.check_label_starts)
_part("calibrator.LabelBlend", "calibration.label_calibrators:LabelBlend", check=checks.check_label_starts)
_part("calibrator.LabelIsotonic", "calibration.label_calibrators:LabelIsotonic", check=checks.check_label_starts)
_part("calibrator.Extrapolation", "calibration.extrapolation:Extrapolation")
_part("recalibration.Setting", "calibration.maps:Setting", exact=True)
_part("recalibration.Identity", "calibration.maps:Unchanged", exact=True)
_part("recalibration.Linear", "calibration.maps:Linear", exact=True)
_part("recalibration.Quadratic", "calibration.maps:Quadratic", exact=True)
_part("recalibration.OneVersusRest", "calibration.maps:OneVersusRest", exact=True)
_part("recalibration.Isotonic", "calibration.maps:Steps", exact=True)
_part("recalibration.Layout", "estimators._recalibrated_rows:Layout", exact=True)
_part("inputs.Inputs", "problem.inputs:Inputs")
_part("inputs.OneHot", "problem.inputs:OneHot")
_part("inputs.Standard", "problem.inputs:Standard")
_part("inputs.Robust", "problem.inputs:Robust")
_part("inputs.Quantile", "problem.inputs:Quantile")
_part("tasks.Tasks", "problem.tasks:Tasks", skip=("_place",))
_part("tasks.CouplingMatrix", "problem.coupling:CouplingMatrix")
_part("tasks.SharedCoupling", "problem.coupling:Shared")
_part("tasks.PairwiseCoupling", "problem.coupling:Pairwise")
_part("tasks.DualForm", "solvers.solve_tasks:DualForm")
_part("tasks.PrimalForm", "solvers.solve_tasks:PrimalForm")
_part("tasks.TaskScores", "baselines.mtl_feat:TaskScores")
_part("labels.Labels", "problem.labels:Labels", exact=True)
_part("labels.LabelGroup", "solvers.label_modes:LabelGroup")
_part("labels.CoupledLabels", "solvers.label_modes:CoupledLabels")
_part("labels.Modes", "linalg.sylvester:Modes")
_part("heldout.HeldoutRows", "calibration.conformal:HeldRows")
_part("heldout.Centring", "problem.coupling:Centring", exact=True)
_part("heldout.Residuals", "estimators.intervals:Residuals", exact=True, skip=("inverse", "same"))
_part("heldout.Spread", "calibration.spread:Spread", exact=True)
_part("heldout.Neighbourhood", "calibration.extrapolation:Neighbourhood")
_part("heldout.RiskCoverage", "calibration.risk:RiskCoverage", exact=True)
_part("influence.TrainingRecord", "solvers.influence:TrainingRecord")
_part("influence.LabelTrainingRecord", "solvers.label_influence:LabelTrainingRecord")
_part("stream.Moments", "linalg.moments:Moments", exact=True, check=checks.check_moments)
_part("stream.Whitening", "linalg.moments:Whitening", exact=True, check=checks.check_whitening)
_part("stream.RowSample", "sources.bottom_k:Kept", exact=True, check=checks.check_row_sample)
_part("table.Column", "tables.columns:Column", exact=True)
_part("splitter.StratifiedTaskKFold", "model_selection:StratifiedTaskKFold")
_part("splitter.StratifiedLabelKFold", "model_selection:StratifiedLabelKFold")
_part("search.Candidate", "solvers.evaluator:Candidate", exact=True)
_part("search.CheckpointEntry", "model_selection.search:CheckpointEntry", exact=True)
_part("search.CheckpointStep", "model_selection.search:SearchStep", exact=True)

# --------------------------------------------------------------------- scikit-learn


def _sklearn(name: str, module: str, estimator: bool = True, **options: Any) -> None:
    register(f"sklearn.{module}:{name}", f"sklearn.{name}", estimator=estimator, **options)


_sklearn("Pipeline", "pipeline", skip=("memory",), check=checks.check_pipeline)
_sklearn("FeatureUnion", "pipeline", skip=("n_jobs",), check=checks.check_n_jobs)
_sklearn("ColumnTransformer", "compose", skip=("n_jobs",), check=checks.check_n_jobs)
_sklearn("TransformedTargetRegressor", "compose")
_sklearn("make_column_selector", "compose", estimator=False)
_sklearn("StandardScaler", "preprocessing")
_sklearn("MinMaxScaler", "preprocessing")
_sklearn("MaxAbsScaler", "preprocessing")
_sklearn("RobustScaler", "preprocessing")
_sklearn("Normalizer", "preprocessing")
_sklearn("Binarizer", "preprocessing")
_sklearn("FunctionTransformer", "preprocessing")
_sklearn("KBinsDiscretizer", "preprocessing")
_sklearn("LabelEncoder", "preprocessing")
_sklearn("OneHotEncoder", "preprocessing", check=checks.check_one_hot)
_sklearn("OrdinalEncoder", "preprocessing")
_sklearn("PolynomialFeatures", "preprocessing", check=checks.check_polynomial)
_sklearn("PowerTransformer", "preprocessing")
_sklearn("QuantileTransformer", "preprocessing")
_sklearn("SimpleImputer", "impute")
_sklearn("MissingIndicator", "impute")
_sklearn("PCA", "decomposition")
_sklearn("TruncatedSVD", "decomposition")
_sklearn("VarianceThreshold", "feature_selection")
_sklearn("SelectKBest", "feature_selection")
_sklearn("SelectPercentile", "feature_selection")
_sklearn("SelectFpr", "feature_selection")
_sklearn("SelectFdr", "feature_selection")
_sklearn("SelectFwe", "feature_selection")
_sklearn("KFold", "model_selection", estimator=False)
_sklearn("StratifiedKFold", "model_selection", estimator=False)
_sklearn("GroupKFold", "model_selection", estimator=False)
_sklearn("StratifiedGroupKFold", "model_selection", estimator=False)
_sklearn("LeaveOneOut", "model_selection", estimator=False)
_sklearn("LeaveOneGroupOut", "model_selection", estimator=False)
_sklearn("ShuffleSplit", "model_selection", estimator=False)
_sklearn("StratifiedShuffleSplit", "model_selection", estimator=False)
_sklearn("GroupShuffleSplit", "model_selection", estimator=False)
_sklearn("SVC", "svm", check=checks.check_svm)
_sklearn("SVR", "svm", check=checks.check_svm)
_sklearn(
    "NearestNeighbors",
    "neighbors",
    skip=("_tree", "n_jobs"),
    check=checks.check_neighbors,
    build=_rebuild_neighbors,
)
