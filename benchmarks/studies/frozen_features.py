"""Rates of hash layers on kept features, for every loss alike: the recipe `frozen_features` of conf.

    kedro run --env=caltech101 --pipelines=full --namespaces=data_ingestion,cnn_pretraining,feature_extraction
    python -m benchmarks.studies.frozen_features caltech101 caltech101/10 --losses orthohash csq

Each environment has kept its training set's features; NAME/10 groups its classes, in their order, into ten large ones.
A quarter of these images judges: it searches the rest, which is learned from. The queries of the environment take no
part. A trial is judged by the mean over what is named. The ranges and the number of trials are those of the pipeline
`tuning`; every loss starts from the same stage 2, whose own rate and decay are the best of a grid.

With --report the recipe is measured: three seeds, the environment's own queries in its database, at the bits of --bits.
"""

import argparse
import logging
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pandas as pd
import yaml
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from numpy.typing import NDArray
from torch import nn, set_num_threads

from benchmarks.documents import markdown_table
from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Experiment, Run
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, build_layers, fit_hash_layer, seed_of
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.splits import stratified_draw
from deephash_pipeline.losses import LOSSES, build_loss
from deephash_pipeline.networks import HashNetwork
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.reports.seeds import cell_text, seeds_table
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits
from deephash_pipeline.training import ArrayInputs, LabelledInputs, TrainingDiverged, train
from deephash_pipeline.tuning.significance import SignificanceParameters
from deephash_pipeline.tuning.space import TuningParameters, nested, rounded, search_space, with_values
from deephash_pipeline.tuning.study import drawn

BITS, SEED, SEEDS = 32, 42, 3
MOST_IMAGES = 2_500
"""Training images of an environment that take part."""
JUDGING = 0.25
RATES_OF_STAGE_2, DECAYS_OF_STAGE_2 = (0.1, 0.2, 0.5, 1.0), (0.0, 0.001, 0.003, 0.01)
EPOCHS_OF_STAGE_2, EPOCHS = 20, 60

Features = NDArray[np.float32]


class Data(NamedTuple):
    """Features (n, z_dimension) and classes (n,) that are learned from, and those that judge."""

    z: Features
    labels: NDArray[np.int64]
    judging_z: Features
    judging_labels: NDArray[np.int64]


def rows_of(environment: str, folder: Path, split: str) -> tuple[Features, NDArray[np.int64]]:
    """Read features and classes of a split; NAME/10 has ten groups of its classes."""
    name, _, groups = environment.partition("/")
    z = np.load(folder / "04_feature" / name / f"{split}_z.npy").astype(np.float32)
    labels = np.load(folder / "02_intermediate" / name / split / "labels.npy").astype(np.int64)
    return z, labels * int(groups) // (int(labels.max()) + 1) if groups else labels


def data_of(environment: str, folder: Path) -> Data:
    """Read and divide the training set of an environment."""
    z, labels = rows_of(environment, folder, "training")
    rows = np.sort(stratified_draw(labels, min(MOST_IMAGES, len(labels)), derive_seed(SEED, "part")))
    z, labels = z[rows], labels[rows]
    judging = stratified_draw(labels, round(JUDGING * len(labels)), derive_seed(SEED, "judging"))
    learned = np.setdiff1d(np.arange(len(labels)), judging)
    return Data(z[learned], labels[learned], z[judging], labels[judging])


def cell_run(method: str, bits: int = BITS, seed: int = SEED) -> Run:
    """Name a training to the project's functions."""
    experiment = Experiment(benchmark="frozen_features", network="lenet", seed=seed, device="cpu")
    return Run(experiment, Cell(method=method, code_length=bits))


def of_rate(rate: float, decay: float) -> HashLayerInitParameters:
    """Give the parameters of stage 2."""
    training = {"epochs": EPOCHS_OF_STAGE_2, "batch_size": 64, "learning_rate": rate, "weight_decay": decay}
    return HashLayerInitParameters.model_validate({"training": training | {"schedule": "one_cycle"}})


def stage_2(data: Data, parameters: HashLayerInitParameters, run: Run) -> PreTrainedWeights:
    """Learn the hash layer that losses start from."""
    names = [str(number) for number in range(int(data.labels.max()) + 1)]
    features = LabelledFeatures(data.z, data.labels, names)
    learned = initialise_hash_layer(features, parameters, run)
    return PreTrainedWeights(trunk={}, hash_layer=learned.weights)


def score(data: Data, encode: Callable[[Features], NDArray[np.bool_]]) -> float:
    """Give the mAP of the judging images in those that were learned from."""
    judging, learned = encode(data.judging_z), encode(data.z)
    codes = pack_bits(judging), pack_bits(learned)
    return mean_average_precision(
        count_distances(codes[0], data.judging_labels, codes[1], data.labels, judging.shape[1])
    )


def signs(start: PreTrainedWeights) -> Callable[[Features], NDArray[np.bool_]]:
    """Encode by the hash layer of stage 2."""
    projection = start.hash_layer["weight"].numpy().T
    return lambda z: z @ projection >= 0


def trained(data: Data, parameters: FineTuningParameters, start: PreTrainedWeights, run: Run) -> float:
    """Train the hash layer on a loss as fine-tuning does on kept features, and judge it."""
    seed = seed_of(run)
    hash_layer, classifier = build_layers(data.z.shape[1], data.labels, parameters, run)
    network = HashNetwork(nn.Identity(), hash_layer, classifier, True, LOSSES[parameters.loss.name].reads_features)
    inputs = ArrayInputs(data.z, run.device)
    if parameters.initial_hash_layer == "random":
        fit_hash_layer(network, inputs, parameters, run)
    else:
        hash_layer.load_state_dict(dict(start.hash_layer), strict=False)
    objective = build_loss(parameters.loss, run.code_length, data.labels, derive_seed(seed, "loss"))
    try:
        train(
            network,
            objective,
            LabelledInputs(inputs, data.labels),
            parameters.training,
            run.engine_run(parameters, seed),
        )
    except TrainingDiverged:
        return 0.0
    code = hash_layer.linear_code()
    projection, threshold = code.projection.numpy(), code.threshold.numpy()
    return score(data, lambda z: z @ projection >= threshold)


def search(
    method: str, parameters: FineTuningParameters, data: list[Data], starts: list[PreTrainedWeights], trials: int
) -> tuple[float, dict[str, float]]:
    """Make the trials of a method; returns the best mean score and its values."""
    tuning = TuningParameters(trials=trials)
    space = search_space(parameters, tuning)
    made: list[optuna.trial.FrozenTrial] = []
    for number in range(trials):
        values = drawn(made, space, tuning, derive_seed(SEED, "tuning", method, number))
        tried = with_values(parameters, values)
        scores = [trained(of, tried, start, cell_run(method)) for of, start in zip(data, starts, strict=True)]
        logging.warning("%s %d: %s %s", method, number, np.round(scores, 3), {k: rounded(v) for k, v in values.items()})
        mean = float(np.mean(scores))
        made.append(optuna.trial.create_trial(value=mean, params=values, distributions={**space}))
    best = max(made, key=lambda done: done.value or 0.0)
    return best.value or 0.0, best.params


def parameters_of(environment: str) -> Mapping[str, Any]:
    """Give an environment's parameters."""
    bootstrap_project(Path.cwd())
    with KedroSession.create(env=environment.partition("/")[0]) as session:
        parameters: Mapping[str, Any] = session.load_context().params
    return parameters


def shortened(parameters: FineTuningParameters) -> FineTuningParameters:
    """Halve the epochs, as trials of the pipeline do."""
    training = parameters.training.model_copy(update={"epochs": EPOCHS // 2, "precision": "float32"})
    changes = {"training": training, "augmentation": AugmentationParameters()}
    return parameters.model_copy(update=changes)


def search_all(environments: list[str], folder: Path, losses: list[str], trials: int) -> None:
    """Search stage 2 and each loss, and print what is found as YAML."""
    data = [data_of(environment, folder) for environment in environments]
    best, starts = 0.0, []
    for rate, decay in product(RATES_OF_STAGE_2, DECAYS_OF_STAGE_2):
        tried = [stage_2(of, of_rate(rate, decay), cell_run("deephash_pretrained")) for of in data]
        scores = [score(of, signs(start)) for of, start in zip(data, tried, strict=True)]
        logging.warning("stage 2: rate %g, decay %g: %s", rate, decay, np.round(scores, 3))
        if np.mean(scores) > best:
            best, starts = float(np.mean(scores)), tried
    methods = parameters_of(environments[0])["fine_tuning"]
    for name in losses:
        value, found = search(name, shortened(methods[name]), data, starts, trials)
        block = {name: nested({key: rounded(number) for key, number in found.items()})}
        print(f"# {value:.4f}", yaml.safe_dump(block, sort_keys=False), sep="\n", flush=True)


def report(environment: str, folder: Path, losses: list[str], functions: list[str], lengths: list[int]) -> pd.DataFrame:
    """Measure the configured recipe: a row for each method, length and seed."""
    parameters = parameters_of(environment)
    data = Data(*rows_of(environment, folder, "training"), *rows_of(environment, folder, "query"))
    rows = []
    for bits, seed in product(lengths, range(SEED, SEED + SEEDS)):
        stage, start = "deephash_pretrained", PreTrainedWeights(trunk={}, hash_layer={})
        for name in (stage, *losses, *functions):
            run = cell_run(name, bits, seed)
            if name == stage:
                start = stage_2(data, parameters["hash_layer_init"], run)
                value = score(data, signs(start))
            elif name in losses:
                value = trained(data, parameters["fine_tuning"][name], start, run)
            else:
                value = score(data, HASH_FUNCTIONS[name](bits, random_state=seed).fit(data.z, data.labels).transform)
            rows.append({"environment": environment, "method": name, "code_length": bits, "seed": seed, "map": value})
            logging.warning("%s", rows[-1])
    return pd.DataFrame(rows)


def compared(measured: pd.DataFrame) -> pd.DataFrame:
    """Give means, deviations and verdicts over the seeds of each environment and code length."""
    tables = []
    for environment, own in measured.groupby("environment", sort=False):
        cells = own.groupby(["method", "code_length"], sort=False)["map"]
        scores = {(str(method), int(bits)): of_seeds.tolist() for (method, bits), of_seeds in cells}  # type: ignore[misc]
        names = {method: METHODS[method] for method in own["method"].unique()}
        table = seeds_table(scores, names, SignificanceParameters())
        tables.append(table.assign(environment=environment))
    return pd.concat(tables)


def page(table: pd.DataFrame) -> str:
    """Write a row for each method, and a column for each environment and code length."""
    cells = {
        (row.environment, row.code_length, row.method): cell_text(pd.Series(row._asdict()))
        for row in table.itertuples()
    }
    columns = list(dict.fromkeys((environment, bits) for environment, bits, _ in cells))
    best = table.groupby("method")["mean"].mean().sort_values(ascending=False)
    return markdown_table(
        {"method": method}
        | {f"{environment}, {bits}": cells[environment, bits, method] for environment, bits in columns}
        for method in best.index
    )


def main() -> None:
    """Search, or measure what is configured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="+")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--losses", nargs="+", default=["deephash"])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--report", type=Path, help="CSV to write: measure, and search nothing")
    parser.add_argument("--hash-functions", nargs="*", default=[])
    parser.add_argument("--bits", nargs="+", type=int, default=[48, 128])
    asked = parser.parse_args()
    logging.getLogger("deephash_pipeline").setLevel(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    set_num_threads(1)
    if asked.report is None:
        search_all(asked.environments, asked.data, asked.losses, asked.trials)
        return
    measured = [report(name, asked.data, asked.losses, asked.hash_functions, asked.bits) for name in asked.environments]
    table = compared(pd.concat(measured))
    table.to_csv(asked.report, index=False)
    print(page(table))


if __name__ == "__main__":
    main()
