/** Numbers as marks and words. Null, which is never zero, is a dash. */

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']
const STEPS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** A bar as long as the value is of the most, in eighths of a character; what is not nothing shows. */
export const bar = (value: number | null, most: number, width: number): string => {
  if (value === null || value <= 0 || most <= 0 || width <= 0) return ''
  const eighths = Math.max(1, Math.round(Math.min(1, value / most) * width * 8))
  return '█'.repeat(eighths >> 3) + EIGHTHS[eighths & 7]!
}

/** A line of steps, the highest for the most; a gap for null. */
export const sparkline = (values: readonly (number | null)[]): string => {
  const most = Math.max(0, ...values.map((value) => value ?? 0))
  return values
    .map((value) =>
      value === null
        ? ' '
        : most === 0
          ? STEPS[0]!
          : STEPS[Math.ceil((Math.max(0, value) / most) * (STEPS.length - 1))]!,
    )
    .join('')
}

export const count = (value: number | null): string => (value === null ? '–' : value.toLocaleString('en'))
export const percent = (value: number | null): string =>
  value === null ? '–' : `${(value * 100).toLocaleString('en', { maximumFractionDigits: 1 })} %`

const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** Seconds as the two greatest units that say something. */
export const duration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  let left = Math.round(seconds)
  const first = units.findIndex(([, size]) => left >= size)
  if (first === -1) return '0 s'
  // The last unit shown is rounded, so that 59 min 59 s of hours are not lost.
  const smallest = units[Math.min(first + 1, units.length - 1)]![1]
  left = Math.round(left / smallest) * smallest
  const parts = units.flatMap(([name, size]) => {
    const n = Math.floor(left / size)
    left -= n * size
    return n > 0 ? [`${n} ${name}`] : []
  })
  return parts.slice(0, 2).join(' ')
}
