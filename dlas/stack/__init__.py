"""The interfaces of the stack, one file an axis, and the values that pass between them.

A *part* is one choice on one axis: a frozen dataclass whose fields are its
options and whose constructor only stores.  Each axis has one short abstract
class here with few required methods; the others have working defaults.
Nothing here imports torch or tvm, so that studies, rows and reports
can be used where neither is installed.  Parts import interfaces from ``dlas.stack`` only.

:mod:`dlas.stack.convolution` defines the letters for a convolution's sizes.
"""

from dlas.errors import InputError, MissingData, Unsupported, unknown
from dlas.stack.algorithm import Algorithm, AlgorithmChooser, AlgorithmMaker, Decisions
from dlas.stack.array import Array
from dlas.stack.bfloat16 import (
    BFLOAT16,
    BFLOAT16_BITS,
    BFLOAT16_STEP,
    from_bfloat16,
    stored_type,
    to_bfloat16,
    upper_half,
)
from dlas.stack.compiler import Backend, Build, Compiler, Program, Runtime
from dlas.stack.compression import Compression
from dlas.stack.convolution import CHANGE_LAYOUT, Conv, Tail, blocked_shape, channel_block
from dlas.stack.dataset import Arrays, Data, Dataset, Images, Labels, Split
from dlas.stack.hardware import (
    ClockReading,
    Hardware,
    MeasureSettings,
    ReadClocks,
    SimulatedHardware,
)
from dlas.stack.layer import (
    Computation,
    Edge,
    Layer,
    NetworkOperator,
    Operator,
    ScheduleChoice,
    TensorView,
    Types,
    describe_layer,
)
from dlas.stack.model import Model, Workspace
from dlas.stack.network import INDEX_BYTES, Facts, Network, Outputs, SavedNetwork, csr_bytes
from dlas.stack.part import PART_AXES, Part
from dlas.stack.predictor import Fitted, Kernels, Predictor, Samples
from dlas.stack.target import GENERIC, Target
from dlas.stack.task import INFERENCE, TASKS, TRAINING, TrainingStep
from dlas.stack.tuning import Bench, TuningCompiler

__all__ = [
    "BFLOAT16",
    "BFLOAT16_BITS",
    "BFLOAT16_STEP",
    "CHANGE_LAYOUT",
    "GENERIC",
    "INDEX_BYTES",
    "INFERENCE",
    "PART_AXES",
    "TASKS",
    "TRAINING",
    "Algorithm",
    "AlgorithmChooser",
    "AlgorithmMaker",
    "Array",
    "Arrays",
    "Backend",
    "Bench",
    "Build",
    "ClockReading",
    "Compiler",
    "Compression",
    "Computation",
    "Conv",
    "Data",
    "Dataset",
    "Decisions",
    "Edge",
    "Facts",
    "Fitted",
    "Hardware",
    "Images",
    "InputError",
    "Kernels",
    "Labels",
    "Layer",
    "MeasureSettings",
    "MissingData",
    "Model",
    "Network",
    "NetworkOperator",
    "Operator",
    "Outputs",
    "Part",
    "Predictor",
    "Program",
    "ReadClocks",
    "Runtime",
    "Samples",
    "SavedNetwork",
    "ScheduleChoice",
    "SimulatedHardware",
    "Split",
    "Tail",
    "Target",
    "TensorView",
    "TrainingStep",
    "TuningCompiler",
    "Types",
    "Unsupported",
    "Workspace",
    "blocked_shape",
    "channel_block",
    "csr_bytes",
    "describe_layer",
    "from_bfloat16",
    "stored_type",
    "to_bfloat16",
    "unknown",
    "upper_half",
]
