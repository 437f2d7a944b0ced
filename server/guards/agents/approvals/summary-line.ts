import { showHidden } from '../../../../catalog/text.ts'

export const toWords = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2)

/**
 * Returns the lines of a value in the summary of a call. A value of several lines is quoted: none of its lines can
 * pose as another one of the summary.
 */
export const line = (label: string, value: unknown): string[] => {
  if (value === undefined || value === null || value === '') return []
  const text = showHidden(toWords(value))
  return text.includes('\n')
    ? [`${label}:`, ...text.split('\n').map((part) => `> ${part}`)]
    : [`${label}: ${text}`]
}
