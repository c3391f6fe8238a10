import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import { ApiError, get } from "../api/client";
import type { Parameter, TrialRow } from "../api/types";
import { timeText } from "../lib/format";
import { PagedRows, visibleRows } from "../lib/pages";
import { replaceQuery, type Route } from "../lib/route";
import { Failure, Tag } from "./basics";

const rowHeight = 32;

interface Props {
  run: string;
  parameters: Parameter[];
  route: Route;
  selected: number | null;
  onTrial: (number: number) => void;
  version: number;
}

interface Column {
  key: string;
  title: string;
  width: string;
  right?: boolean;
  cell: (row: TrialRow) => React.ReactNode;
}

function columnsOf(parameters: Parameter[]): Column[] {
  return [
    { key: "number", title: "#", width: "64px", right: true, cell: (row) => row.number },
    {
      key: "time_ns",
      title: "time",
      width: "104px",
      right: true,
      cell: (row) => timeText(row.time_ns),
    },
    { key: "verdict", title: "verdict", width: "148px", cell: (row) => <Tag text={row.verdict} /> },
    { key: "proposer", title: "proposed by", width: "132px", cell: (row) => row.proposer },
    ...parameters.map((one) => ({
      key: `p.${one.name}`,
      title: one.name,
      width: `${Math.max(84, 9 * one.name.length + 26)}px`,
      right: true,
      cell: (row: TrialRow) => String(row.configuration[one.name] ?? ""),
    })),
  ];
}

/** The query of the API for one page. */
export function trialsPath(run: string, route: Route, offset: number, limit: number): string {
  const query = new URLSearchParams({
    limit: String(limit),
    offset: String(offset),
    sort: route.query.get("sort") ?? "number",
  });
  const verdict = route.query.get("verdict");
  if (verdict) query.set("verdict", verdict);
  for (const [key, value] of route.query) {
    if (key.startsWith("p.") && value) query.set(key, value);
  }
  return `/runs/${encodeURIComponent(run)}/trials?${query}`;
}

function Filters({ parameters, route }: { parameters: Parameter[]; route: Route }) {
  const verdicts = [
    "correct",
    "sampled",
    "unchecked",
    "wrong-result",
    "low-precision",
    "compile-error",
    "resource-limit",
    "out-of-bounds",
    "race",
    "nondeterministic",
    "timeout",
    "crash",
  ];
  const tunable = parameters.filter((one) => one.values.length > 1);
  return (
    <div className="tools filters">
      <label>
        verdict{" "}
        <select
          value={route.query.get("verdict") ?? ""}
          onChange={(e) => replaceQuery(route, { verdict: e.target.value })}
        >
          <option value="">all</option>
          {verdicts.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {tunable.slice(0, 6).map((one) => (
        <label key={one.name}>
          {one.name}{" "}
          <select
            value={route.query.get(`p.${one.name}`) ?? ""}
            onChange={(e) => replaceQuery(route, { [`p.${one.name}`]: e.target.value })}
          >
            <option value="">all</option>
            {one.values.map((value) => (
              <option key={String(value)}>{String(value)}</option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

function Header({ columns, route }: { columns: Column[]; route: Route }) {
  const sort = route.query.get("sort") ?? "number";
  return (
    <div className="row head" role="row">
      {columns.map((column) => {
        const up = sort === column.key;
        const down = sort === `-${column.key}`;
        return (
          <div
            key={column.key}
            role="columnheader"
            aria-sort={up ? "ascending" : down ? "descending" : "none"}
            className={column.right ? "right" : ""}
          >
            <button
              type="button"
              onClick={() => replaceQuery(route, { sort: up ? `-${column.key}` : column.key })}
            >
              {column.title}
              {up ? " ▲" : down ? " ▼" : ""}
            </button>
          </div>
        );
      })}
    </div>
  );
}

/** All trials of a run. The server sorts and filters; only rows in view are loaded and drawn. */
export function TrialTable({ run, parameters, route, selected, onTrial, version }: Props) {
  const [, redraw] = useState(0);
  const [error, setError] = useState<ApiError | null>(null);
  const [view, setView] = useState({ scroll: 0, height: 420 });
  const rows = useRef<PagedRows<TrialRow> | null>(null);
  const body = useRef<HTMLDivElement>(null);
  const columns = columnsOf(parameters);
  const key = `${trialsPath(run, route, 0, 0)} ${version}`;
  useEffect(() => {
    let live = true;
    setError(null);
    rows.current = new PagedRows<TrialRow>(
      async (offset, limit) => {
        const page = await get<{ trials: TrialRow[]; total: number }>(
          trialsPath(run, route, offset, limit),
        );
        return { rows: page.trials, total: page.total };
      },
      () => live && redraw((n) => n + 1),
      (failure) => live && failure instanceof ApiError && setError(failure),
    );
    rows.current.show(0, 40);
    return () => {
      live = false;
    };
    // The key holds all that the query depends on.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  useLayoutEffect(() => {
    const element = body.current;
    if (!element) return;
    const measure = () => setView({ scroll: element.scrollTop, height: element.clientHeight });
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    return () => element.removeEventListener("scroll", measure);
  }, []);
  const total = rows.current?.total ?? null;
  const { first, last } = visibleRows(view.scroll, view.height - rowHeight, rowHeight, total ?? 0);
  useEffect(() => {
    if (total) rows.current?.show(first, last);
  }, [first, last, total]);
  const move = (event: KeyboardEvent) => {
    const current = document.activeElement as HTMLElement | null;
    if (event.key === "ArrowDown") (current?.nextElementSibling as HTMLElement | null)?.focus();
    else if (event.key === "ArrowUp")
      (current?.previousElementSibling as HTMLElement | null)?.focus();
    else if (event.key === "Enter" && current?.dataset.trial)
      onTrial(Number(current.dataset.trial));
    else return;
    event.preventDefault();
  };
  const template = { gridTemplateColumns: `${columns.map((one) => one.width).join(" ")} 1fr` };
  return (
    <>
      <Filters parameters={parameters} route={route} />
      {error && <Failure error={error} />}
      <div
        className="grid"
        role="table"
        aria-label="trials"
        aria-rowcount={(total ?? 0) + 1}
        ref={body}
        tabIndex={0}
      >
        <div className="sheet" style={{ ...template, height: rowHeight * ((total ?? 0) + 1) }}>
          <Header columns={columns} route={route} />
          <div
            className="rows"
            role="rowgroup"
            onKeyDown={move}
            style={{ transform: `translateY(${first * rowHeight}px)` }}
          >
            {Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => {
              const row = rows.current?.row(first + i);
              return (
                <div
                  key={first + i}
                  className={`row ${row && row.number === selected ? "chosen" : ""}`}
                  role="row"
                  aria-rowindex={first + i + 2}
                  tabIndex={0}
                  data-trial={row?.number}
                  onClick={() => row && onTrial(row.number)}
                >
                  {row ? (
                    columns.map((one) => (
                      <div key={one.key} role="cell" className={one.right ? "right" : ""}>
                        {one.cell(row)}
                      </div>
                    ))
                  ) : (
                    <div role="cell" className="waiting">
                      …
                    </div>
                  )}
                </div>
              );
            })}
          </div>
        </div>
      </div>
      <p className="hint" role="status">
        {total === null ? "Loading trials…" : `${total.toLocaleString("en")} trials`}
      </p>
    </>
  );
}
