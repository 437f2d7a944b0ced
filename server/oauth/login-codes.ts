import { randomInt } from 'node:crypto'
import type { Scope } from '../../catalog/operation.ts'
import { createLoginCode, type LoginCode, takeLoginCode } from '../../storage/access/oauth.ts'
import type { Db } from '../../storage/database.ts'
import { hashApiKey } from '../api-keys.ts'

/** Login codes: what a person types to sign in on a page of this server. */

/** Without letters and digits that look alike. */
const ALPHABET = '23456789ABCDEFGHJKMNPQRSTVWXYZ'
const LENGTH = 12
const LOGIN_CODE_TTL_MS = 10 * 60_000

/** Folds what a person typed to the form that is hashed; undefined when it cannot be a code. */
const normalizeCode = (text: string): string | undefined => {
  const code = text.toUpperCase().replaceAll(/[\s-]/g, '')
  return code.length === LENGTH && [...code].every((char) => ALPHABET.includes(char)) ? code : undefined
}

const hashCode = (code: string): Buffer => hashApiKey(`login code ${code}`)

type Grantable = { staffId: string; scopes: readonly Scope[]; keyExpiresAt: string | null }

/**
 * Creates a login code of a staff member, in place of the one before: 12 characters (59 bits), valid once, for
 * 10 minutes. `scopes` and `keyExpiresAt` bound what can be granted with it. Undefined when there is no such
 * staff member, or it is disabled.
 */
export const issueLoginCode = async (
  db: Db,
  workspaceId: string,
  grantable: Grantable,
  now: string,
): Promise<{ code: string; expiresAt: string } | undefined> => {
  const code = Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  const expiresAt = new Date(Date.parse(now) + LOGIN_CODE_TTL_MS).toISOString()
  const created = await createLoginCode(
    db,
    workspaceId,
    { hash: hashCode(code), ...grantable },
    { now, expiresAt },
  )
  return created ? { code: code.replaceAll(/.{4}(?=.)/g, '$&-'), expiresAt } : undefined
}

/** Takes a login code; undefined when it is none, or does not work any more. */
export const redeemLoginCode = async (db: Db, text: string, now: string): Promise<LoginCode | undefined> => {
  const code = normalizeCode(text)
  return code === undefined ? undefined : await takeLoginCode(db, hashCode(code), now)
}
