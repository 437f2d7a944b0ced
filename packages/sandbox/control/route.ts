import type { z } from 'zod'
import type { App } from '../../../server/app.ts'
import { parsePhone } from '../../../server/domains/contacts/phone.ts'
import type { Actor } from '../../../server/kernel/context.ts'
import { invalidField } from '../../../server/kernel/problem.ts'
import type { ControlClient } from './client.ts'
import type { SandboxSync } from './sync.ts'

export type RouteContext = { app: App; control: ControlClient; sync: SandboxSync; actor: Actor }

/**
 * A route below `/sandbox`. `name`: in the audit trail. `changes`: needs the scope `messaging:write` and a
 * live key. `target`: the input field that names what is changed. `run` returns the JSON of the response.
 */
export type ControlRoute = {
  name: string
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  changes: boolean
  target?: { type: string; field: string } | undefined
  input: z.ZodObject
  run: (ctx: RouteContext, input: never) => Promise<unknown>
}

export const defineRoute = <S extends z.ZodObject>(
  name: `sandbox.${string}`,
  route: `${ControlRoute['method']} ${string}`,
  input: S,
  run: (ctx: RouteContext, input: z.output<S>) => Promise<unknown>,
  target?: ControlRoute['target'],
): ControlRoute => {
  const [method, path] = route.split(' ') as [ControlRoute['method'], string]
  const changes = method !== 'GET'
  return { name, method, path, changes, target, input: input.strict(), run: run as ControlRoute['run'] }
}

/** Parses a phone number of the input to digits. Throws 400. */
export const parseDigits = (field: string, text: string): string => {
  const phone = parsePhone(text)
  if ('error' in phone) throw invalidField(field, 'invalid_phone', phone.error, { fix: phone.fix })
  return phone.digits
}
