import assert from 'node:assert/strict'
import { errors } from '../catalog/errors.ts'
import type { Reply } from './doors.ts'

/** Every refusal over HTTP is a whole RFC 9457 document, whatever caused it (docs/errors.md). */
export const assertProblem = (reply: Reply, baseUrl: string): void => {
  const { body, headers, status } = reply
  const shown = `${status} ${reply.text.slice(0, 500)}`
  assert.match(headers['content-type'] ?? '', /^application\/problem\+json/, shown)
  assert.ok(Object.hasOwn(errors, body.code), shown)
  const known = errors[body.code as keyof typeof errors]
  assert.equal(status, known.status, shown)
  assert.equal(body.status, status, shown)
  assert.equal(body.title, known.title, shown)
  assert.equal(body.type, `${baseUrl}/errors/${body.code}`, shown)
  assert.ok(typeof body.detail === 'string' && body.detail.length > 0, shown)
  assert.match(body.request_id, /^req_[0-9A-HJKMNP-TV-Z]{26}$/, shown)
  assert.equal(headers['request-id'], body.request_id, shown)
  assert.match(headers['api-version'] ?? '', /^\d{4}-\d{2}-\d{2}$/, shown)
  if (status === 401) assert.match(headers['www-authenticate'] ?? '', /^Bearer/, shown)
  if (status === 429) assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/, shown)
  if (body.errors !== undefined) for (const error of body.errors) assertFieldError(error, shown)
}

const assertFieldError = (error: Record<string, unknown>, shown: string): void => {
  const places = ['pointer', 'parameter', 'header'].filter((p) => error[p] !== undefined)
  assert.equal(places.length, 1, shown)
  if (error['pointer'] !== undefined) assert.match(error['pointer'] as string, /^#(\/|$)/, shown)
  for (const part of ['code', 'detail'])
    assert.ok(typeof error[part] === 'string' && error[part] !== '', shown)
}
