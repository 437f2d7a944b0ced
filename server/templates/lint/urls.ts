import { withoutVariables } from '../variables.ts'
import type { Button } from './rule.ts'
import { isBlank } from './text.ts'

/**
 * An absolute https URL with a host. Stricter than the URL parser, which mends spaces and missing slashes
 * that the provider does not.
 */
export const isHttpsUrl = (text: string): boolean =>
  /^https:\/\/[^\s/?#\\]\S*$/i.test(text) && URL.canParse(text)

/** The URL as it looks when sent. */
export const sampleUrl = (url: string): string => withoutVariables(url, 'x')

export const hostOf = (url: string): string =>
  isHttpsUrl(sampleUrl(url)) ? new URL(sampleUrl(url)).hostname.replace(/\.$/, '') : ''

export const isDynamic = (url: string): boolean => url.includes('{{')

/** The part before `{{1}}`, where that is the only variable and ends the URL; undefined otherwise. */
export const fixedPart = ({ url }: Button): string | undefined => {
  if (isBlank(url) || !isDynamic(url!)) return undefined
  const at = url!.indexOf('{{')
  return url!.slice(at) === '{{1}}' ? url!.slice(0, at) : undefined
}
