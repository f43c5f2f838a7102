import { render } from "preact";
import { App } from "./app";
import { startRouter } from "./route";
import { takeTokenFromAddress } from "./session";
import "./style.css";
import { startTheme } from "./theme";

takeTokenFromAddress();
// Opening another address with a token in this tab changes only the fragment.
window.addEventListener("hashchange", takeTokenFromAddress);
startTheme();
startRouter();
const root = document.getElementById("app");
if (root) render(<App />, root);
