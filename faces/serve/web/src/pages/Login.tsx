import { useState, type FormEvent } from "react";
import { ApiError, send } from "../api/client";
import { Card, Failure } from "../parts/basics";

/** Exchanges a token for a cookie. */
export function Login({ done }: { done: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await send("POST", "/session", { token });
      done();
    } catch (failure) {
      if (failure instanceof ApiError) setError(failure);
    }
  };
  return (
    <Card title="Sign in">
      <form onSubmit={submit}>
        <div className="field">
          <label htmlFor="token">Token</label>
          <input
            id="token"
            type="password"
            autoComplete="off"
            value={token}
            onChange={(e) => setToken(e.target.value)}
            aria-describedby="token-note"
          />
          <p className="hint" id="token-note">
            This server needs one: <code>atunner token create</code> on its machine makes it.
          </p>
        </div>
        {error && <Failure error={error} />}
        <button type="submit" className="primary" disabled={token === ""}>
          Sign in
        </button>
      </form>
    </Card>
  );
}
