// Figures as people read them. Absent is unknown, and told as a dash.

const UNKNOWN = "–";
const unknown = (value) => value === null || value === undefined;

/** At most three digits, or more for large numbers: "0.4", "52", "5,120". */
function short(number) {
  if (number <= 0) {
    return "0";
  }
  if (number < 0.05) {
    return "<0.1";
  }
  return number < 9.95 ? number.toFixed(1) : Math.round(number).toLocaleString("en");
}

export const count = (number) => (unknown(number) ? UNKNOWN : number.toLocaleString("en"));

export const perSecond = (number, seconds) => (unknown(number) ? UNKNOWN : short(number / seconds));

export function bytes(number) {
  if (unknown(number)) {
    return UNKNOWN;
  }
  let left = number;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (left < 1000) {
      return unit === "B" ? `${left < 1 && left > 0 ? "<1" : Math.round(left)} B` : `${short(left)} ${unit}`;
    }
    left /= 1024;
  }
  return `${short(left)} GiB`;
}

export const bytesPerSecond = (number, seconds) => (unknown(number) ? UNKNOWN : bytes(number / seconds));

export function percent(share) {
  if (unknown(share)) {
    return UNKNOWN;
  }
  const hundredths = share * 100;
  return hundredths > 0 && hundredths < 0.05 ? "<0.1%" : `${hundredths < 9.95 ? Number(hundredths.toFixed(1)) : Math.round(hundredths)}%`;
}

/** Milliseconds without the unit; "<" and ">" are bounds. */
export function ms(latency) {
  if (unknown(latency)) {
    return UNKNOWN;
  }
  const { ms: value, sign } = latency;
  return `${sign}${value < 1 ? Number(value.toPrecision(2)) : value < 100 ? Number(value.toFixed(1)) : Math.round(value).toLocaleString("en")}`;
}
