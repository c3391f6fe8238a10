"""Gradients of attention, and decoding from pages, on the GPU of this machine: PyTorch (cuDNN) and atunner in one run.

Backward: cuDNN is timed forward and backward, as atunner's task begins with q, k, v and dy and so contains the forward pass.
Decoding: cuDNN takes keys and values that lie side by side; the share is of `--peak` GB/s, for keys and values read once. The artifact
that was tuned is launched on a table without repeated pages and with sequences of full length.
Times are medians of CUDA events with L2 emptied by a write before each sample.
Usage: python3 bench/attention.py --atunner build/atunner [--budget 12,10s] [--only backward,decode] [--lengths 1024,4096,16384]
       (ATUNNER_RUNTIME names libatunner_runtime.so)
"""
import os
import sys
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
import atunner_runtime  # noqa: E402
from common import DTYPES, flags, run_atunner, time_us  # noqa: E402

# sequences, heads, key heads, dim, keys of a page, pages of a sequence
DECODES = [(64, 32, 8, 128, 16, 256), (64, 32, 8, 64, 16, 256), (64, 16, 4, 256, 16, 256), (8, 32, 8, 128, 16, 1024), (1, 32, 8, 128, 16, 1024),
           (32, 32, 32, 128, 16, 128), (64, 64, 4, 128, 64, 64)]


def attend(q, k, v, **settings):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **settings)


def tuned(options, command, dtype, folder, name, rows):
    """The artifact, loaded, and what was said where there is none."""
    answer = run_atunner(options.atunner, [*command, "--out", folder], dtype, options.budget)
    if "error" in answer:
        return None, answer["error"].get("what", "")[:80]
    return atunner_runtime.ArtifactSet(folder).choose(dims={"rows": rows}, name=name), ""


def backward(options, flush):
    print(f"{'backward':<34} {'dtype':<9} {'cuDNN forward':>13} {'backward':>9} {'atunner, both':>13} {'TFLOP/s':>8} {'ratio':>6}")
    for length in map(int, options.lengths.split(",")):
        for dim in (64, 128, 256):
            for causal in (False, True):
                for name in options.dtypes.split(","):
                    shape = (16384 // length, 2048 // dim, length, dim)
                    q, k, v, dy = (torch.randn(shape, device="cuda", dtype=DTYPES[name]) for _ in range(4))
                    forward = time_us(lambda: attend(q, k, v, is_causal=causal), (), flush)
                    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
                    y = attend(*leaves, is_causal=causal)
                    back = time_us(lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True), (), flush)
                    text = ",".join(map(str, shape))
                    with tempfile.TemporaryDirectory() as folder:
                        kernel, error = tuned(options, ["attention_gqa_backward", "--input-shape", text, "--attr", f"causal={str(causal).lower()}"], name, folder,
                                              "attention_gqa_backward", shape[0])
                        best = float("nan")
                        if kernel:
                            scratch = torch.empty(kernel.workspace_bytes, device="cuda", dtype=torch.uint8)
                            gradients = [torch.empty_like(q) for _ in range(3)]
                            best = time_us(lambda: kernel(q, k, v, dy, *gradients, workspace=scratch), (), flush)
                    flops = 14 * shape[0] * shape[1] * length * length * dim / (2 if causal else 1)
                    print(f"{str((*shape, causal)):<34} {name:<9} {forward:>13.1f} {back:>9.1f} {best:>13.1f} {flops / best / 1e6:>8.0f} {(forward + back) / best:>6.2f} {error}", flush=True)


def decode(options, flush):
    print(f"{'decode':<34} {'dtype':<9} {'cuDNN, no pages':>15} {'atunner':>9} {'GB/s':>6} {'share':>6} {'ratio':>6}")
    for sequences, heads, key_heads, dim, page, pages in DECODES:
        for name in options.dtypes.split(","):
            q = torch.randn(sequences, heads, dim, device="cuda", dtype=DTYPES[name])
            k_pool, v_pool = (torch.randn(sequences * pages, page, key_heads, dim, device="cuda", dtype=DTYPES[name]) for _ in range(2))
            table = torch.randperm(sequences * pages, device="cuda").reshape(sequences, pages)
            last = torch.full((sequences,), page * pages - 1, device="cuda", dtype=torch.int64)
            k, v = (pool[table].reshape(sequences, pages * page, key_heads, dim).transpose(1, 2).contiguous() for pool in (k_pool, v_pool))
            library = time_us(lambda: attend(q[:, :, None], k, v, enable_gqa=True), (), flush)
            wanted = attend(q[:, :, None], k, v, enable_gqa=True)[:, :, 0].float()
            shapes = [f"{sequences},{heads},{dim}", f"{sequences * pages},{page},{key_heads},{dim}", f"{sequences},{pages}"]
            with tempfile.TemporaryDirectory() as folder:
                kernel, error = tuned(options, ["attention_paged", "--input-shape", *shapes], name, folder, "attention_paged", sequences)
                best = float("nan")
                if kernel:
                    scratch = torch.empty(kernel.workspace_bytes, device="cuda", dtype=torch.uint8)
                    y = torch.empty_like(q)
                    best = time_us(lambda: kernel(q, k_pool, v_pool, table, last, y, workspace=scratch), (), flush)
                    error = f"off cuDNN by {((y.float() - wanted).norm() / wanted.norm()).item():.1e}"
            rate = 2 * k.numel() * k.element_size() / best / 1e3
            print(f"{str((sequences, heads, key_heads, dim, page, pages)):<34} {name:<9} {library:>15.1f} {best:>9.1f} {rate:>6.0f} {rate / options.peak * 100:>5.1f}% {library / best:>6.2f} {error}",
                  flush=True)


def main():
    parser = flags(__doc__, "12,10s", "bfloat16", "backward,decode")
    parser.add_argument("--lengths", default="1024,4096,16384")
    parser.add_argument("--peak", type=float, default=4800, help="GB/s of the memory, by its data sheet")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; times in us; ratio = cuDNN / atunner")
    for which, run in (("decode", decode), ("backward", backward)):
        if which in options.only.split(","):
            run(options, flush)


if __name__ == "__main__":
    main()
