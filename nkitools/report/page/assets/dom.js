// Elements. All text goes in as text, never as HTML: names and source lines are whatever an author wrote.

export function h(tag, properties, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("aria-")) {
      element.setAttribute(key, String(value));
      continue;
    }
    if (value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key === "style") element.style.cssText = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// A canvas as large as its box says, in the screen's own pixels.
export function canvas(width, height, draw) {
  const ratio = window.devicePixelRatio || 1;
  const element = h("canvas");
  element.width = Math.max(1, Math.round(width * ratio));
  element.height = Math.max(1, Math.round(height * ratio));
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
  const context = element.getContext("2d");
  context.scale(ratio, ratio);
  draw?.(context);
  return element;
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
