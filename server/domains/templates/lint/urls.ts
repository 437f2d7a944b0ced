import { isBlank } from '../../../../catalog/values.ts'
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

/** Returns an example URL, which ends with the given value where possible; empty when it is no URL. */
export const exampleUrl = (fixed: string, given = ''): string => {
  const example = fixed + (/^[\w.~%-]+$/.test(given) ? given : '17')
  return isHttpsUrl(example) ? example : ''
}

/** Whether the example of a URL is a URL itself, rather than the value of its variable. */
export const isWholeUrl = (example: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(example)

/** Returns the address with its variable at the end; empty when it is no URL. */
export const moveVariableToEnd = (address: string): string => {
  const rest = address.replaceAll(/\/?\{\{[^{}]*\}\}/g, '').replaceAll(/\{\{|\}\}/g, '')
  return isHttpsUrl(rest) ? `${rest}${/[=/]$/.test(rest) ? '' : '/'}{{1}}` : ''
}
