"""The tables of training in `docs/performance.md`, from the results of `training_loop` and `large_batch`."""

from typing import Any

from benchmarks.documents import (
    RESULTS,
    markdown_table,
    read_results,
    write_section,
)

SECTION = "loop"
TRAINING_LOOP = "training_loop"
LARGE_BATCH = "large_batch"
DISTRIBUTIONS = ("numpy", "numba", "torch")
PARTS = ("data", "forward", "backward", "loss", "optimiser", "other")
GIBIBYTE = 2**30


def training_tables(results: dict[str, Any]) -> str:
    """Render the shares of a step, the comparison with the bare network, and the options."""
    tables = [describe_run(results)]
    cases = results["cases"]
    if all(part in case["seconds_of_step"] for case in cases for part in PARTS):
        tables += [
            "**Where a step's time goes.** `loss` includes its gradient with respect to u; `products` is the share of "
            "an epoch inside convolutions and matrix products, forward and backward, by PyTorch's profiler, which "
            "slows small operations down.",
            markdown_table(("training", "batch", "step, ms", *PARTS, "products"), [_shares(case) for case in cases]),
        ]
    tables += [
        "**Beside the bare network.** Images per second of `train` and of encoding, and of the same network's forward, "
        "backward and optimiser step (forward pass alone for encoding) on random tensors that lie ready.",
        markdown_table(
            ("training", "batch", "train", "bare", "ratio", "encode", "bare", "ratio"),
            [_throughput(case) for case in cases],
        ),
        "**Options**, pre-training at a batch of 128, images per second.",
        markdown_table(
            ("network", "options", "images per second", "times the default", "first epoch, s"),
            _options(results["options"]),
        ),
    ]
    return "\n\n".join(tables)


def large_batch_table(results: dict[str, Any]) -> str:
    """Render one exact step beside what plain autograd would keep."""
    settings = results["settings"]
    plain = results["kept_bytes_per_image"] * settings["batch_size"] / GIBIBYTE
    rows = [
        ("images", f"{settings['batch_size']:,}"),
        ("network, bits", f"{settings['network']}, {settings['code_length']}"),
        ("`chunk_size`", f"{settings['chunk_size']}"),
        ("peak memory of the process", f"{results['peak_bytes'] / GIBIBYTE:.2f} GiB"),
        ("plain autograd would keep", f"{plain:.0f} GiB ({results['kept_bytes_per_image'] / 2**20:.1f} MiB per image)"),
        ("CPU time of one thread", f"{results['cpu_seconds']:,.0f} s"),
        ("wall time", f"{results['wall_seconds']:,.0f} s"),
        (
            f"gradient of {settings['compared_batch']} images in chunks, relative difference from one piece",
            f"{results['relative_difference']:.0e}",
        ),
    ]
    return "\n\n".join(
        [
            "**A batch of 10,000.** One step of `train` on images of 227x227 pixels "
            "(`python -m benchmarks.large_batch`), the peak with the pages of the mapped image file; what autograd "
            "keeps for the backward pass is measured on a small batch and scaled.",
            describe_run(results),
            markdown_table(("", ""), rows),
        ]
    )


def describe_run(results: dict[str, Any]) -> str:
    """One line on machine and versions."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    device = f"{results['device']}; " if "device" in results else ""
    load = f"load {machine['load_average']} at the start"
    return f"{device}{machine['processor']}, {machine['cores']} cores, {load}; {versions}."


def write_training_section() -> None:
    """Write all tables that there are results for.

    Raises:
        InputError: there are none.
    """
    renderers = {TRAINING_LOOP: training_tables, LARGE_BATCH: large_batch_table}
    there = [name for name in renderers if (RESULTS / f"{name}.json").is_file()] or [TRAINING_LOOP]
    content = "\n\n".join(renderers[name](read_results(RESULTS / f"{name}.json")) for name in there)
    write_section(SECTION, content)


def _shares(case: dict[str, Any]) -> tuple[str, ...]:
    seconds = case["seconds_of_step"]
    step = sum(seconds.values())
    return (
        *_name(case),
        f"{1e3 * step:.1f}",
        *(f"{seconds[part] / step:.1%}" for part in PARTS),
        f"{case['share_of_products']:.1%}",
    )


def _throughput(case: dict[str, Any]) -> tuple[str, ...]:
    pairs = [(case[name], case[f"{name}_bare"]) for name in ("images_per_second", "encoded_per_second")]
    return (
        *_name(case),
        *(cell for own, bare in pairs for cell in (f"{own:,.0f}", f"{bare:,.0f}", f"{own / bare:.2f}")),
    )


def _options(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    default = {row["network"]: row["images_per_second"] for row in rows if not row["options"]}
    return [
        (
            row["network"],
            ", ".join(f"`{name}: {str(value).lower()}`" for name, value in row["options"].items()) or "default",
            f"{row['images_per_second']:,.0f}",
            f"{row['images_per_second'] / default[row['network']]:.2f}",
            f"{row['first_call_seconds']:.1f}",
        )
        for row in rows
    ]


def _name(case: dict[str, Any]) -> tuple[str, str]:
    return case["case"]["name"], str(case["case"]["batch_size"])
