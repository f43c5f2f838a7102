import { render } from "preact";
import { App } from "./app";
import { startPress } from "./live/press";
import { startRouter } from "./route";
import { startSession } from "./session";
import "./style.css";
import { startTheme } from "./theme";

function start(): void {
  startSession();
  startTheme();
  startRouter();
  startPress();
}

function show(): void {
  const root = document.getElementById("app");
  if (root) render(<App />, root);
}

// Each in a task of its own: reading this script is as long a task as the page may have, and the first look at the browser's
// storage waits for another process.
const work = [start, show];
const { port1, port2 } = new MessageChannel();
port1.onmessage = () => {
  work.shift()?.();
  if (work.length > 0) port2.postMessage(null);
  else port1.close();
};
port2.postMessage(null);
