/* A component whose code is loaded when it is shown for the first time, so that the first load of the
 * page stays small. A whole view says that it is loading; a panel or a dialog appears when it is there. */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../api/http";
import { whenReleased } from "../live/press";

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>, meanwhile: ComponentChildren = null) {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, setReady] = useState(loaded !== null);
    const [error, setError] = useState<string | null>(null);
    useEffect(() => {
      if (loaded !== null) return undefined;
      let here = true;
      const show = (make: () => void) => whenReleased(() => { if (here) make(); });
      load().then((component) => { loaded = component; show(() => setReady(true)); }, (e: unknown) => show(() => setError(messageOf(e))));
      return () => { here = false; };
    }, []);
    const Loaded = loaded;
    if (Loaded !== null) return <Loaded {...props} />;
    return error === null ? <>{meanwhile}</> : <p class="stale" role="alert">A part of the page could not be loaded: {error}. Reload the page; the server may have a newer version.</p>;
  };
}

/** The same for a view, which is all of the page below its head. */
export const lazyView = <P extends object>(load: () => Promise<ComponentType<P>>) => lazy(load, <main><p class="hint" role="status">Loading…</p></main>);
