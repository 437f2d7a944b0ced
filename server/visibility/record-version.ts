import type { VersionedKind } from '../../catalog/operation.ts'

/*
 * The version of a record as clients know it: `<n>.<digests>`. `n` counts its changes and alone decides; the digests
 * are of what the client was shown, three characters a field, so that a refusal can name the fields that differ from
 * what this client has read, without a history of them, and without a word on fields that it may not see.
 */

/** In the order of their digests. New ones go to the end: versions that clients hold have none for them. */
const fields = {
  contact: [
    'name',
    'phone',
    'email',
    'dnd',
    'starred',
    'tags',
    'groups',
    'attributes',
    'chatapp_user_id',
    'web_visitor_id',
    'external_id',
    'metadata',
    'username',
  ],
  template: [
    'category',
    'sub_category',
    'status',
    'rejection_reason',
    'header',
    'body',
    'footer',
    'code_expiration_minutes',
    'buttons',
    'cards',
    'limited_time_offer',
    'meta_errors',
  ],
  quick_message: ['code', 'title', 'type', 'text', 'media_url', 'visibility', 'team_id'],
  saved_filter: ['name', 'description', 'filter'],
  // Not the secret, even of what is shown of it: versions are written to logs.
  endpoint: ['url', 'description', 'status', 'custom_headers', 'payload_format', 'subscriptions'],
} as const satisfies Record<VersionedKind, readonly string[]>

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Characters of a digest. */
const WIDTH = 3
/** In place of the digest of a field that was not shown. */
const NOT_SHOWN = '~~~'

const PRIME = 0x01_00_01_93

const addText = (text: string, hash: number): number => {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME)
  return Math.imul(hash ^ text.length, PRIME)
}

/** Adds a value to a hash (FNV-1a). Its JSON would take longer to write than this does. */
const add = (value: unknown, hash: number): number => {
  if (typeof value === 'string') return addText(value, hash)
  if (typeof value !== 'object' || value === null) return addText(String(value), ~hash)
  if (Array.isArray(value)) for (const member of value) hash = add(member, hash)
  else for (const [key, member] of Object.entries(value)) hash = add(member, addText(key, hash))
  return Math.imul(~hash, PRIME)
}

/** 18 bits of a hash: enough for a hint. */
const digest = (value: unknown): string => {
  const hash = add(value, 0x81_1c_9d_c5)
  const folded = hash ^ (hash >>> 18)
  return ALPHABET[(folded >>> 12) & 63]! + ALPHABET[(folded >>> 6) & 63]! + ALPHABET[folded & 63]!
}

/** Returns the version of a record that is shown as `record`. */
const toVersion = (kind: VersionedKind, n: number, record: object): string => {
  let digests = ''
  for (const field of fields[kind]) {
    const value = (record as Record<string, unknown>)[field]
    digests += value === undefined ? NOT_SHOWN : digest(value)
  }
  return `${n}.${digests}`
}

/** Returns a record as it is shown, with its version. */
export const withVersion = <T extends object>(
  kind: VersionedKind,
  n: number,
  record: T,
): T & { version: string } => ({ ...record, version: toVersion(kind, n, record) })

/** Returns versions, one or several, without the digests of what was shown: for those who may see less. */
export const withoutDigests = (versions: string): string => versions.replaceAll(/\.[\w~-]+/g, '')

const numberOf = (version: string): string => version.split('.', 1)[0]!

/** Whether a precondition holds: `*`, or versions with commas between them, of which one is the current one. */
export const isMet = (precondition: string, n: number): boolean =>
  precondition === '*' || precondition.split(',').some((version) => numberOf(version.trim()) === String(n))

/** Whether a record whose version is `n` has had one of these versions: they count from 1. */
export const hasHad = (precondition: string, n: number): boolean =>
  precondition.split(',').some((version) => {
    const number = numberOf(version.trim())
    return /^[1-9]/.test(number) && Number(number) <= n
  })

/**
 * Returns the names of the fields in which two versions of a record differ, as far as both were shown; undefined when
 * the first has no digests, or is a list.
 */
export const listChangedFields = (
  kind: VersionedKind,
  since: string,
  current: string,
): string[] | undefined => {
  if (since.includes(',')) return undefined
  const [was = '', is = ''] = [since, current].map((version) => version.split('.')[1])
  if (was === '') return undefined
  return fields[kind].filter((_, i) => {
    const [before, after] = [was, is].map((digests) => digests.slice(WIDTH * i, WIDTH * (i + 1)))
    return before !== after && before !== NOT_SHOWN && after !== NOT_SHOWN && before!.length === WIDTH
  })
}
