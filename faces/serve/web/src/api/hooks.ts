import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, get } from "./client";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  reload: () => void;
}

/** The answer to a GET; null paths ask nothing. Repeats every `seconds` if that is not 0. */
export function useGet<T>(path: string | null, seconds = 0): Loaded<T> {
  const [state, setState] = useState<{
    path: string | null;
    data: T | null;
    error: ApiError | null;
  }>({ path, data: null, error: null });
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const data = await get<T>(path, abort.signal);
        setState({ path, data, error: null });
      } catch (error) {
        if (!(error instanceof ApiError)) return;
        setState((old) => ({ path, data: old.path === path ? old.data : null, error }));
      }
      if (seconds > 0) timer = window.setTimeout(ask, seconds * 1000);
    };
    void ask();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [path, seconds, turn]);
  const current = state.path === path;
  return { data: current ? state.data : null, error: current ? state.error : null, reload };
}

/** Calls `onEvent` with each named event of a stream until it is closed or ends by `end`. */
export function useEvents(
  path: string | null,
  names: string[],
  onEvent: (name: string, data: unknown) => void,
): boolean {
  const [open, setOpen] = useState(false);
  const handler = useRef(onEvent);
  handler.current = onEvent;
  const key = names.join();
  useEffect(() => {
    if (path === null) return;
    const source = new EventSource(`/api/v1${path}`);
    source.onopen = () => setOpen(true);
    source.onerror = () => setOpen(false);
    for (const name of key.split(",")) {
      source.addEventListener(name, (event) => {
        if (name === "end") source.close();
        handler.current(name, JSON.parse((event as MessageEvent<string>).data));
      });
    }
    return () => source.close();
  }, [path, key]);
  return open;
}
