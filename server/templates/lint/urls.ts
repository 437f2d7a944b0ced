import { isBlank } from '../../../catalog/values.ts'
import { replaceVariables } from '../variables.ts'
import type { DraftButton } from './rule.ts'

/**
 * Whether the text is an absolute https URL with a host. Stricter than the URL parser, which repairs spaces
 * and missing slashes, unlike the provider.
 */
export const isHttpsUrl = (text: string): boolean =>
  /^https:\/\/[^\s/?#\\]\S*$/i.test(text) && URL.canParse(text)

/** The URL as it may look when sent. */
export const sampleUrl = (url: string): string => replaceVariables(url, 'x')

export const parseUrlHost = (url: string): string =>
  isHttpsUrl(sampleUrl(url)) ? new URL(sampleUrl(url)).hostname.replace(/\.$/, '') : ''

export const isDynamic = (url: string): boolean => url.includes('{{')

/** The part before `{{1}}`, where that is the only variable and ends the URL; undefined otherwise. */
export const fixedPrefix = ({ url }: DraftButton): string | undefined => {
  if (isBlank(url) || !isDynamic(url!)) return undefined
  const at = url!.indexOf('{{')
  return url!.slice(at) === '{{1}}' ? url!.slice(0, at) : undefined
}
