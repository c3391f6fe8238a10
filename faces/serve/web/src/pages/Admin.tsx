import { useState, type FormEvent } from "react";
import { ApiError, send } from "../api/client";
import { useGet } from "../api/hooks";
import type { Status } from "../api/types";
import { agoText, durationText } from "../lib/format";
import { Card, Empty, Failure, Figure, Loading } from "../parts/basics";

interface Token {
  id: string;
  name: string;
  scopes: string[];
  created: string;
  expires: string | null;
  last_used: string | null;
}

interface Entry {
  time: string;
  method: string;
  path: string;
  status: number;
  name?: string;
  remote?: string;
  request_id?: string;
}

const scopes = ["read", "submit", "work", "admin"];

function NewToken({ made }: { made: () => void }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState(["read"]);
  const [days, setDays] = useState("90");
  const [secret, setSecret] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const create = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    setSecret(null);
    try {
      const answer = await send<{ token: string }>("POST", "/tokens", {
        name: name.trim(),
        scopes: chosen,
        ...(days.trim() ? { expires_days: Number(days) } : {}),
      });
      setSecret(answer.token);
      setName("");
      made();
    } catch (failure) {
      if (failure instanceof ApiError) setError(failure);
    }
  };
  const toggle = (scope: string, on: boolean) =>
    setChosen((old) => (on ? [...old, scope] : old.filter((one) => one !== scope)));
  return (
    <form onSubmit={create} noValidate>
      <div className="fields">
        <div className="field">
          <label htmlFor="token-name">Name</label>
          <input
            id="token-name"
            value={name}
            autoComplete="off"
            placeholder="ci"
            onChange={(e) => setName(e.target.value)}
          />
        </div>
        <div className="field">
          <label htmlFor="token-days">Days until it ends</label>
          <input
            id="token-days"
            inputMode="numeric"
            value={days}
            onChange={(e) => setDays(e.target.value)}
          />
        </div>
        <fieldset className="choice">
          <legend>It may</legend>
          {scopes.map((scope) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={chosen.includes(scope)}
                onChange={(e) => toggle(scope, e.target.checked)}
              />{" "}
              {scope}
            </label>
          ))}
        </fieldset>
      </div>
      {error && <Failure error={error} />}
      {secret && (
        <p className="state warn" role="status">
          Copy it now, it is shown this once: <code className="secret">{secret}</code>
        </p>
      )}
      <button type="submit" className="primary" disabled={!name.trim() || chosen.length === 0}>
        Make a token
      </button>
    </form>
  );
}

function Tokens({ tokens, changed }: { tokens: Token[]; changed: () => void }) {
  const [error, setError] = useState<ApiError | null>(null);
  const [asked, setAsked] = useState<string | null>(null);
  const revoke = async (id: string) => {
    if (asked !== id) return setAsked(id);
    setAsked(null);
    try {
      await send("DELETE", `/tokens/${encodeURIComponent(id)}`);
      changed();
    } catch (failure) {
      if (failure instanceof ApiError) setError(failure);
    }
  };
  if (tokens.length === 0)
    return <Empty>No token yet. Beyond this machine every request needs one.</Empty>;
  return (
    <>
      {error && <Failure error={error} />}
      <table className="stack">
        <thead>
          <tr>
            <th>name</th>
            <th>may</th>
            <th>made</th>
            <th>ends</th>
            <th>last used</th>
            <th>
              <span className="hidden">revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((one) => (
            <tr key={one.id}>
              <td data-label="name">
                <span className="strong">{one.name}</span>
                <small>{one.id}</small>
              </td>
              <td data-label="may">{one.scopes.join(", ")}</td>
              <td data-label="made">{agoText(one.created)}</td>
              <td data-label="ends">{one.expires ? one.expires.slice(0, 10) : "never"}</td>
              <td data-label="last used">{one.last_used ? agoText(one.last_used) : "never"}</td>
              <td className="right">
                <button type="button" className="danger" onClick={() => revoke(one.id)}>
                  {asked === one.id ? `Really revoke ${one.name}` : `Revoke ${one.name}`}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Audit({ version }: { version: number }) {
  const { data, error, reload } = useGet<{ entries: Entry[] }>(`/audit?limit=100&v=${version}`);
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return <Loading what="the audit log" />;
  if (data.entries.length === 0) return <Empty>Nothing was changed or refused yet.</Empty>;
  return (
    <div className="scroll tall" tabIndex={0} role="region" aria-label="audit log">
      <table>
        <thead>
          <tr>
            <th>when</th>
            <th>who</th>
            <th>what</th>
            <th className="right">answer</th>
          </tr>
        </thead>
        <tbody>
          {data.entries.map((one, i) => (
            <tr key={`${one.request_id} ${i}`} className={one.status >= 400 ? "bad" : ""}>
              <td title={one.time}>{agoText(one.time)}</td>
              <td>
                {one.name || "no token"}
                <small>{one.remote}</small>
              </td>
              <td>
                {one.method} <code>{one.path}</code>
              </td>
              <td className="right">{one.status}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Admin() {
  const { data: status } = useGet<Status>("/status", 10);
  const tokens = useGet<{ tokens: Token[] }>("/tokens");
  const [version, setVersion] = useState(0);
  const changed = () => {
    tokens.reload();
    setVersion((n) => n + 1);
  };
  return (
    <>
      <h1>Administration</h1>
      {status && (
        <dl className="figures">
          <Figure label="version" value={status.version} />
          <Figure label="running for" value={durationText(status.uptime_seconds)} />
          <Figure label="workers" value={status.workers} detail="seen during the last minute" />
          <Figure
            label="tokens"
            value={status.auth_required ? "needed" : "not needed"}
            detail={status.auth_required ? "" : "on this machine"}
          />
        </dl>
      )}
      <Card title="Tokens">
        {tokens.error && <Failure error={tokens.error} retry={tokens.reload} />}
        {!tokens.data && !tokens.error && <Loading what="tokens" />}
        {tokens.data && <Tokens tokens={tokens.data.tokens} changed={changed} />}
      </Card>
      {tokens.data && (
        <Card title="A new token">
          <NewToken made={changed} />
        </Card>
      )}
      {tokens.data && (
        <Card title="Who changed what">
          <Audit version={version} />
        </Card>
      )}
    </>
  );
}
