import { createHash, randomBytes, randomInt } from 'node:crypto'

/**
 * Creates a message id. The provider's contain the customer's phone number; these are random letters and
 * digits, which fit any path.
 */
export const newWamid = (): string =>
  `wamid.HBgL${Buffer.from(randomBytes(18).toString('hex').toUpperCase()).toString('base64')}`

/** Creates an id of sixteen digits, which is exact as a JSON number. */
export const newObjectId = (): string => `1${String(randomInt(2 ** 47)).padStart(15, '0')}`

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
export const newLinkCode = (): string => Array.from(randomBytes(14), (byte) => BASE32[byte & 31]).join('')

/** Derives the business-scoped id of a customer from the phone: always the same for the same account. */
export const deriveUserId = (accountId: string, waId: string): string =>
  `US.${BigInt(`0x${createHash('sha256').update(`${accountId}/${waId}`).digest('hex').slice(0, 16)}`)
    .toString()
    .padStart(20, '1')}`

/** Whether the text has the 2026 form of user ids, `CC.…` or `CC.ENT.…`. */
export const isUserId = (text: string): boolean => /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/.test(text)
