// Colours that people who see no red, no green or no blue can tell apart (after Okabe and Ito), cool
// for what is well and warm for what is not; the values are in style.css, one set for each theme.

export type Colour = "sky" | "blue" | "green" | "orange" | "red" | "purple" | "grey" | "calm" | "calmer";

/** A colour of the theme that is on now. */
export function colour(name: Colour | "text" | "muted" | "grid" | "card" | "loss"): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
