import { findSandboxMessage } from '../../../storage/sandbox/messages.ts'
import { type Call, isObject, isText, textWithin } from './call.ts'
import { badValue, missing, required } from './errors.ts'
import { checkInteractive } from './interactive-checks.ts'
import { checkLocation, checkMedia, MEDIA } from './part-checks.ts'

/** What every type of message but templates must have, checked in the provider's words. */
type Check = (call: Call, part: Record<string, unknown>) => Promise<void> | void

const checkReaction: Check = async (call, part) => {
  if (!isText(part.message_id)) throw missing('Param reaction must have message_id.')
  if (typeof part.emoji !== 'string' || part.emoji.length > 40)
    throw badValue("Param reaction['emoji'] must be one emoji, or empty to remove it.")
  const message = await findSandboxMessage(call.db, part.message_id)
  if (!message || message.number_id !== call.path.id) throw badValue('Message ID is invalid.')
}

const checkContacts = (part: unknown): void => {
  if (!Array.isArray(part) || part.length === 0 || part.length > 257)
    throw badValue('Param contacts must be a list of 1 to 257 contacts.')
  part.forEach((one: unknown, n) => {
    const name = isObject(one) ? one.name : undefined
    if (!isObject(name) || !isText(name.formatted_name))
      throw missing(`Param contacts[${n}]['name']['formatted_name'] is required.`)
  })
}

const checks: Readonly<Record<string, Check>> = {
  text: (_, part) => {
    if (part.body === undefined) throw required("text['body']")
    textWithin(part.body, "text['body']", 4096)
    if (part.preview_url !== undefined && typeof part.preview_url !== 'boolean')
      throw badValue("Param text['preview_url'] must be a boolean.")
  },
  ...Object.fromEntries(
    MEDIA.map((type) => [type, (call: Call, part: Record<string, unknown>) => checkMedia(call, type, part)]),
  ),
  reaction: checkReaction,
  location: (_, part) => checkLocation(part),
  interactive: (call, part) => checkInteractive(call, part),
}

export const isFreeForm = (type: string): boolean => Object.hasOwn(checks, type) || type === 'contacts'

/** Refuses a message whose envelope or part is not what the type needs. */
export const checkFreeForm = async (
  call: Call,
  type: string,
  body: Record<string, unknown>,
): Promise<void> => {
  const part = body[type]
  if (part === undefined) throw required(type)
  if (type === 'contacts') return checkContacts(part)
  if (!isObject(part)) throw badValue(`Param ${type} must be a JSON object.`)
  await checks[type]!(call, part)
}
