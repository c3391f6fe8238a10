#!/usr/bin/env python3
"""Draws the losses of free runs that `training.py --parts curve` has written.

    bench/training_curve.py results.jsonl bert docs/how-to/pictures/training-curve.svg
"""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP = 720, 400, 60, 20
COLOURS = {"plan": "#c00000", "eager bf16": "#1f5fa8", "eager fp32": "#3a8f3a"}


def curves_of(path, model):
    found = None
    for line in open(path):
        facts = json.loads(line)
        if facts["model"] == model and "curve" in facts:
            found = facts["curve"]
    if found is None:
        sys.exit(f"{path} has no curve of {model}: run training.py with --parts curve")
    return found


def colour_of(name):
    return next((c for key, c in COLOURS.items() if name.startswith(key)), "#808080")


def line_of(values, place, colour, wide):
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(i, v) for i, v in enumerate(values)))
    width = 2 if wide else 1
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def picture(curves, model):
    """The losses on a logarithmic scale, as SVG."""
    steps = max(len(values) for values in curves.values())
    logs = [math.log10(max(v, 1e-12)) for values in curves.values() for v in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))

    def place(step, loss):
        across = (WIDTH - LEFT - 20) * step / max(steps - 1, 1)
        down = (high - math.log10(max(loss, 1e-12))) / (high - low)
        return LEFT + across, TOP + (HEIGHT - TOP - 50) * down

    text = '<text x="{}" y="{}" font-size="12" font-family="sans-serif" fill="{}">{}</text>'
    rows = [text.format(LEFT, 14, "#000000", f"{model}: loss by step")]
    for power in range(low, high + 1):
        y = place(0, 10.0**power)[1]
        rows.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 20}" stroke="#dddddd"/>')
        rows.append(text.format(8, f"{y + 4:.1f}", "#000000", f"1e{power}"))
    for number in range(0, steps + 1, 50):
        rows.append(text.format(f"{place(number, 1.0)[0]:.1f}", HEIGHT - 30, "#000000", number))
    order = sorted(curves, key=lambda name: name == "plan")
    rows += [line_of(curves[n], place, colour_of(n), n == "plan") for n in order]
    for i, (name, colour) in enumerate(COLOURS.items()):
        rows.append(text.format(LEFT + 150 * i, HEIGHT - 10, colour, name))
    body = "\n".join(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    results, model, out = sys.argv[1:]
    with open(out, "w") as file:
        file.write(picture(curves_of(results, model), model))


if __name__ == "__main__":
    main()
