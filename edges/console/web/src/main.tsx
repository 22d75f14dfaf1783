import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { keepChoices } from "./state";
import { start } from "./stream";

keepChoices();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
start();
