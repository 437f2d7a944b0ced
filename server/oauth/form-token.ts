import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { App } from '../app.ts'

/**
 * Returns a text that only the page of this subject contains: another site cannot make a browser send its form.
 * `subject` names the page, its step and what only this browser holds.
 */
export const createFormToken = ({ secrets }: Pick<App, 'secrets'>, subject: string): string => {
  const { secret } = secrets.secrets.find(({ fingerprint }) => fingerprint === secrets.current)!
  const key = Buffer.from(hkdfSync('sha256', secret, 'wcrm', 'oauth forms', 32))
  return createHmac('sha256', key).update(subject).digest('base64url')
}

/** Compares without telling by the time where two texts differ. */
export const isSameToken = (given: string, expected: string): boolean => {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
