const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
}

/** Returns the milliseconds of `25h` or `1d 2h 30m`; undefined when the text is not a duration. */
export const parseDuration = (text: string): number | undefined => {
  if (!/^\s*(\d{1,9}\s*[smhdw]\s*)+$/i.test(text)) return undefined
  return [...text.matchAll(/(\d+)\s*([smhdw])/gi)].reduce(
    (sum, [, n, unit]) => sum + Number(n) * UNIT_MS[unit!.toLowerCase()]!,
    0,
  )
}
