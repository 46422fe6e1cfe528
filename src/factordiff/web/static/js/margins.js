// How sure somebody is: the margin between the likeliest color and the next, and how to say it.

export const marginOf = (logDoubt) => -Math.expm1(logDoubt);

// 1 - margin where the margin rounds to 1: networks are often surer than three digits can say.
export function sayMargin(logDoubt) {
  const margin = marginOf(logDoubt);
  if (margin < 0.9995) return `margin ${margin.toFixed(3)}`;
  if (logDoubt <= -98) return "margin 1";
  const power = Math.floor(logDoubt / Math.LN10);
  return `margin 1 − ${(Math.exp(logDoubt - power * Math.LN10)).toFixed(1)}·10${String(power).replace(/[-0-9]/g, (d) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(d)])}`;
}
