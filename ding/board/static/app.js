// Selects the view, and updates it regularly.

import { h, setText } from "./dom.js";
import { Gone } from "./data.js";
import { RunListView } from "./list.js";
import { RunView } from "./run.js";

const EVERY = 1500;
const main = document.getElementById("main");
const link = document.getElementById("link");
const state = { view: null, single: false, since: Date.now() };

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [head, ids, tab] = path.split("/");
  state.view?.close?.();
  if (head === "runs" && ids) {
    state.view = new RunView(ids.split(",").map(decodeURIComponent), tab || "curves", state);
  } else {
    state.view = new RunListView(new URLSearchParams(query), state);
  }
  main.replaceChildren(state.view.element);
  window.scrollTo(0, 0);
  refresh();
}

let running = Promise.resolve();
function refresh() {
  const view = state.view;
  running = running.then(async () => {
    if (view !== state.view) return;
    try {
      await view.update();
      state.since = Date.now();
      if (view === state.view) showLink("live", "up to date");
    } catch (error) {
      if (view !== state.view) return;
      if (error instanceof Gone) {
        const at = new Date(state.since).toLocaleTimeString("en-GB");
        showLink("lost", `no connection; as of ${at}`);
        view.lost?.();
      } else {
        console.error(error);
        showLink("lost", error.message);
        view.failed?.(error);
      }
    }
  });
  return running;
}

function showLink(kind, text) {
  link.className = `link ${kind}`;
  setText(link, text);
}

const THEMES = ["system", "light", "dark"];
function setTheme(theme) {
  localStorage.setItem("theme", theme);
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
  setText(document.getElementById("theme"), `Theme: ${theme}`);
  state.view?.themed?.();
}
document.getElementById("theme").addEventListener("click", () => {
  const now = localStorage.getItem("theme") ?? "system";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.view?.themed?.());

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") {
    const box = document.querySelector("input[type=search]");
    if (box) { box.focus(); event.preventDefault(); }
  } else if (event.key === "Escape" && /^#\/runs/.test(location.hash)) {
    location.hash = "#/";
  } else {
    state.view?.key?.(event);
  }
});

addEventListener("hashchange", route);
setTheme(localStorage.getItem("theme") ?? "system");
route();
(async () => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, EVERY));
    if (!document.hidden) await refresh();
  }
})();
