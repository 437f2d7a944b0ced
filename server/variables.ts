import { findNearestName } from './nearest-name.ts'

/** Variables of the command line, which a server does not read but may find beside its own. */
const CLIENT_VARIABLES = [
  'WCRM_API_KEY',
  'WCRM_API_VERSION',
  'WCRM_COMPACT',
  'WCRM_KEYCHAIN',
  'WCRM_PAGER',
  'WCRM_PROFILE',
  'WCRM_READONLY',
  'WCRM_TOOLSETS',
  'WCRM_URL',
] as const

/** Set by processes of this program for their own, and by tests. */
const INTERNAL = /^WCRM_(INTERNAL|TEST|RECORD)_/
/** Kubernetes adds these for a service named wcrm. */
const SERVICE_LINKS = /^WCRM_(SERVICE_(HOST|PORT)|PORT_\d+_)/

/** Returns the `WCRM_` variables that mean nothing to this version, each with the one that was probably meant. */
export const findUnknownVariables = (
  env: Record<string, string | undefined>,
  settings: readonly string[],
): { name: string; nearest: string | undefined }[] => {
  const known = [...settings, ...CLIENT_VARIABLES]
  return Object.keys(env)
    .filter((name) => name.startsWith('WCRM_') && !known.includes(name))
    .filter((name) => !INTERNAL.test(name) && !SERVICE_LINKS.test(name))
    .map((name) => ({ name, nearest: nearestVariable(name, known) }))
}

/** Compares what follows the common prefix: with it, any two short names would be near. */
const nearestVariable = (name: string, known: readonly string[]): string | undefined => {
  const shorten = (variable: string): string => variable.slice('WCRM_'.length).toLowerCase()
  const nearest = findNearestName(shorten(name), known.map(shorten))
  return nearest && `WCRM_${nearest.toUpperCase()}`
}
