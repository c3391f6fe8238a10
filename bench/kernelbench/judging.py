"""Whether a result is right, as the benchmark compares, or nearer to float64 than eager's."""

import torch


def differences(got, want):
    """What the worst element is off by, and how many elements are beyond the benchmark's 1e-4."""
    off = (got.double() - want.double()).abs()
    beyond = ~(off <= 1e-4 + 1e-4 * want.double().abs())
    beyond &= ~((got == want) | (got.isnan() & want.isnan()))
    return off.max().item() if off.numel() else 0.0, int(beyond.sum().item())


def in_slices(compare, *tensors, elements=1 << 27):
    """`compare` on slices of large tensors: float64 copies of gigabytes do not fit."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    parts = [
        compare(*(tensor[start : start + elements] for tensor in flat))
        for start in range(0, max(1, flat[0].numel()), elements)
    ]
    return max(worst for worst, _ in parts), sum(count for _, count in parts)


def judged(module, inputs, got, want):
    """The outcome and what is off."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return {
            "outcome": "wrong",
            "detail": f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}",
        }
    worst, beyond = in_slices(differences, got, want)
    row = {"outcome": "ok", "worst": worst}
    if beyond == 0:
        return row
    row["detail"] = f"{beyond} of {got.numel()} elements beyond 1e-4, at most {worst:.2e}"
    row["outcome"] = "wrong"
    try:
        doubles = [x.double() if x.is_floating_point() else x for x in inputs]
        exact = module.double()(*doubles)
        module.float()
        ours, eager = (in_slices(differences, each, exact)[0] for each in (got, want))
    except torch.cuda.OutOfMemoryError if hasattr(torch.cuda, "OutOfMemoryError") else MemoryError:
        return {**row, "detail": row["detail"] + "; float64 does not fit into memory"}
    row["detail"] += f"; from float64: atunner {ours:.2e}, eager {eager:.2e}"
    return {**row, "outcome": "ok64" if ours <= eager else "wrong"}
