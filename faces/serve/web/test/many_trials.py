"""Puts a run with many trials into a store, made of the newest finished run of that store.

    many_trials.py STORE NUMBER

The trials repeat those of the first run under other numbers; their times are invented. Prints the
id of the new run.
"""

import json
import random
import sqlite3
import sys


def main():
    store, number = sys.argv[1], int(sys.argv[2])
    chance = random.Random(1)
    connection = sqlite3.connect(store, timeout=20)
    run = connection.execute(
        "SELECT id, space FROM runs WHERE status = 'finished' ORDER BY created DESC").fetchone()
    new, parameters = run[0] + "-many", json.loads(run[1])["parameters"]
    names = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    changed = {"id": f"'{new}'", "key": f"'{new}'"}
    connection.execute(
        f"INSERT INTO runs ({', '.join(names)}) SELECT "
        f"{', '.join(changed.get(name, name) for name in names)} FROM runs WHERE id = ?", run[:1])
    columns = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
    first = dict(zip(columns, connection.execute(
        "SELECT * FROM trials WHERE run = ? AND verdict = 'correct'", run[:1]).fetchone()))
    whole = json.loads(first["body"])
    # What pages read; all of it would be half a gigabyte.
    body = {name: whole[name] for name in ("resources", "memory_bytes") if name in whole}
    body["verdict"] = {"reason": ""}

    def rows():
        for i in range(1, number + 1):
            body["configuration"] = [chance.choice(one["values"]) for one in parameters]
            wrong = i % 7 == 0
            body["number"] = i
            body["verdict"]["kind"] = "wrong-result" if wrong else "correct"
            time = None if wrong else first["objective_ns"] * (1 + chance.random() ** 2)
            yield tuple({**first, "run": new, "number": i, "candidate": f"{i:032x}",
                         "verdict": body["verdict"]["kind"], "objective_ns": time,
                         "body": json.dumps(body)}[name] for name in columns)

    connection.executemany(
        f"INSERT INTO trials ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        rows())
    connection.commit()
    print(new)


main()
