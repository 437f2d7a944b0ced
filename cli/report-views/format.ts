// Numbers as bars and text. Null, which means unknown and not zero, is a dash.

const BAR_EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']
const SPARK_STEPS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** Renders a bar in eighths of a character, `width` long at `max`. A positive value is at least an eighth. */
export const renderBar = (value: number | null, max: number, width: number): string => {
  if (value === null || value <= 0 || max <= 0 || width <= 0) return ''
  const eighths = Math.max(1, Math.round(Math.min(1, value / max) * width * 8))
  return '█'.repeat(eighths >> 3) + BAR_EIGHTHS[eighths & 7]!
}

/** Renders a one-line chart, the highest step for the maximum; a gap for null. */
export const renderSparkline = (values: readonly (number | null)[]): string => {
  const max = Math.max(0, ...values.map((value) => value ?? 0))
  return values
    .map((value) =>
      value === null
        ? ' '
        : max === 0
          ? SPARK_STEPS[0]!
          : SPARK_STEPS[Math.ceil((Math.max(0, value) / max) * (SPARK_STEPS.length - 1))]!,
    )
    .join('')
}

export const formatCount = (value: number | null): string =>
  value === null ? '–' : value.toLocaleString('en')
export const formatPercent = (value: number | null): string =>
  value === null ? '–' : `${(value * 100).toLocaleString('en', { maximumFractionDigits: 1 })} %`

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** Formats seconds in their two largest UNITS that are not zero. */
export const formatDuration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  let remaining = Math.round(seconds)
  const first = UNITS.findIndex(([, size]) => remaining >= size)
  if (first === -1) return '0 s'
  // Rounded to the last unit shown, so that 59 min 59 s after an hour are not dropped.
  const smallest = UNITS[Math.min(first + 1, UNITS.length - 1)]![1]
  remaining = Math.round(remaining / smallest) * smallest
  const parts = UNITS.flatMap(([name, size]) => {
    const n = Math.floor(remaining / size)
    remaining -= n * size
    return n > 0 ? [`${n} ${name}`] : []
  })
  return parts.slice(0, 2).join(' ')
}
