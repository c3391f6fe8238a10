import { useCallback, useState } from "react";
import { useGet } from "../api/hooks";
import type { Run as RunType, TrialRow } from "../api/types";
import { baselineNs } from "../lib/baseline";
import { agoText, durationText, timeText } from "../lib/format";
import { replaceQuery, type Route } from "../lib/route";
import { Card, EvidenceTag, Failure, Figure, Loading, Tag } from "../parts/basics";
import { Analysis } from "../parts/Analysis";
import { TrialDetail } from "../parts/TrialDetail";
import { TrialTable } from "../parts/TrialTable";

/** The fastest trials, which the charts show. */
const mostAnalysed = 10000;

function Figures({ run }: { run: RunType }) {
  const baseline = baselineNs(run);
  const floor = run.summary?.floor_ns;
  return (
    <dl className="figures">
      <Figure
        label="best"
        value={timeText(run.best_ns)}
        detail={<EvidenceTag evidence={run.evidence} />}
      />
      <Figure
        label="speed-up"
        value={baseline && run.best_ns ? `${(baseline.ns / run.best_ns).toFixed(2)}×` : "–"}
        detail={baseline && `over ${baseline.name}, ${timeText(baseline.ns)}`}
      />
      <Figure
        label="physical floor"
        value={floor ? timeText(floor) : "–"}
        detail={
          floor && run.best_ns ? `best is at ${Math.round((100 * floor) / run.best_ns)} %` : ""
        }
      />
      <Figure
        label="trials"
        value={run.trials.toLocaleString("en")}
        detail={
          run.summary?.space_size
            ? `of ${run.summary.space_size.toLocaleString("en")} configurations`
            : ""
        }
      />
    </dl>
  );
}

export default function Run({ id, route }: { id: string; route: Route }) {
  const name = encodeURIComponent(id);
  const { data: run, error, reload } = useGet<RunType>(`/runs/${name}`);
  const heat = useGet<{ trials: TrialRow[]; total: number }>(
    run ? `/runs/${name}/trials?sort=time_ns&limit=${mostAnalysed}` : null,
  );
  const [version, setVersion] = useState(0);
  const onTrial = useCallback(
    (number: number) => replaceQuery(route, { trial: String(number) }),
    [route],
  );
  if (error && !run) return <Failure error={error} retry={reload} />;
  if (!run) return <Loading what="the run" />;
  const parameters = run.space.parameters;
  const selected = Number(route.query.get("trial")) || null;
  const refresh = () => {
    reload();
    heat.reload();
    setVersion(version + 1);
  };
  return (
    <>
      <div className="title">
        <h1>
          {run.task || run.id} <Tag text={run.status} />
        </h1>
        <div className="tools">
          <button type="button" onClick={refresh}>
            Refresh
          </button>
          <a
            className="button"
            href={`/api/v1/runs/${name}/report?format=html`}
            target="_blank"
            rel="noreferrer"
          >
            Report
          </a>
        </div>
      </div>
      <p className="hint">
        {run.id} on {run.device}, {agoText(run.created)}, {durationText(run.seconds)}
        {run.summary?.stop_reason ? `; ${run.summary.stop_reason}` : ""}
      </p>
      {run.command && (
        <p className="command">
          <code>{run.command}</code>
        </p>
      )}
      <Figures run={run} />
      <Card title="What matters">
        {heat.error && <Failure error={heat.error} retry={heat.reload} />}
        {!heat.data && !heat.error && <Loading what="times" />}
        {heat.data && (
          <Analysis
            trials={heat.data.trials}
            parameters={parameters}
            route={route}
            onTrial={onTrial}
          />
        )}
        {heat.data && heat.data.total > mostAnalysed && (
          <p className="hint">Of the {mostAnalysed.toLocaleString("en")} fastest trials.</p>
        )}
      </Card>
      <div className={selected ? "split" : ""}>
        <Card title="Trials">
          <TrialTable
            run={run.id}
            parameters={parameters}
            route={route}
            selected={selected}
            onTrial={onTrial}
            version={version}
          />
        </Card>
        {selected && (
          <TrialDetail
            run={run.id}
            number={selected}
            parameters={parameters}
            close={() => replaceQuery(route, { trial: null })}
          />
        )}
      </div>
    </>
  );
}
