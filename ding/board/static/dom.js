// Creates elements and formats values. All text becomes text nodes: no file content becomes markup.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export function number(value, digits = 4) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7)) {
    return Math.abs(value) < 1e-3 ? value.toExponential(2) : compact.format(value);
  }
  return value.toLocaleString("en", { maximumSignificantDigits: Math.max(digits, 1) });
}

export function count(value) {
  if (typeof value !== "number") return "–";
  return value < 1e6 ? Math.round(value).toLocaleString("en") : compact.format(value);
}

export function bytes(value) {
  if (typeof value !== "number") return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${number(value, 3)} ${units[unit]}`;
}

export function duration(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function ago(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  const date = new Date(iso);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

const SIGNS = {
  running: "●", converged: "✓", finished: "■", interrupted: "‖", failed: "✕", killed: "✕", unreadable: "✕", unknown: "?",
};

export function badge(status) {
  const known = status in SIGNS ? status : "unknown";
  return h("span", { class: `badge ${known}` }, h("i", { "aria-hidden": "true" }, SIGNS[known]), ` ${status}`);
}

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function sparkline(points, label) {
  const [width, height] = [96, 26];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": label });
  if (points.length < 2) return picture;
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const place = ([x, y]) => [
    2 + ((x - x0) / (x1 - x0 || 1)) * (width - 6),
    height - 3 - ((y - y0) / (y1 - y0 || 1)) * (height - 6),
  ];
  const [x, y] = place(points[points.length - 1]);
  picture.append(svg("polyline", { points: points.map((p) => place(p).map((v) => v.toFixed(1)).join()).join(" ") }),
    svg("circle", { cx: x, cy: y, r: 2 }));
  return picture;
}
