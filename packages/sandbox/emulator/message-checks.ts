import { isObject } from '../../../catalog/values.ts'
import { findSandboxMessage } from '../storage/messages.ts'
import { type SandboxCall, isNonEmptyText, requireText } from './call.ts'
import { badParameterValue, missingPart, parameterRequired } from './errors.ts'
import { checkInteractive } from './interactive-checks.ts'
import { checkLocation, checkMedia, MEDIA_TYPES } from './part-checks.ts'

/** Checks the part of a message of one type; throws the provider's error. */
type Check = (call: SandboxCall, part: Record<string, unknown>) => Promise<void> | void

const checkReaction: Check = async (call, part) => {
  if (!isNonEmptyText(part.message_id)) throw missingPart('Param reaction must have message_id.')
  if (typeof part.emoji !== 'string' || part.emoji.length > 40)
    throw badParameterValue("Param reaction['emoji'] must be one emoji, or empty to remove it.")
  const message = await findSandboxMessage(call.db, part.message_id)
  if (!message || message.number_id !== call.path.id) throw badParameterValue('Message ID is invalid.')
}

const checkContacts = (part: unknown): void => {
  if (!Array.isArray(part) || part.length === 0 || part.length > 257)
    throw badParameterValue('Param contacts must be a list of 1 to 257 contacts.')
  part.forEach((contact: unknown, n) => {
    const name = isObject(contact) ? contact.name : undefined
    if (!isObject(name) || !isNonEmptyText(name.formatted_name))
      throw missingPart(`Param contacts[${n}]['name']['formatted_name'] is required.`)
  })
}

const checks: Readonly<Record<string, Check>> = {
  text: (_, part) => {
    if (part.body === undefined) throw parameterRequired("text['body']")
    requireText(part.body, "text['body']", 4096)
    if (part.preview_url !== undefined && typeof part.preview_url !== 'boolean')
      throw badParameterValue("Param text['preview_url'] must be a boolean.")
  },
  ...Object.fromEntries(
    MEDIA_TYPES.map((type) => [
      type,
      (call: SandboxCall, part: Record<string, unknown>) => checkMedia(call, type, part),
    ]),
  ),
  reaction: checkReaction,
  location: (_, part) => checkLocation(part),
  interactive: (call, part) => checkInteractive(call, part),
}

export const isFreeForm = (type: string): boolean => Object.hasOwn(checks, type) || type === 'contacts'

/** Throws when the part of a message is not what its type requires. */
export const checkFreeForm = async (
  call: SandboxCall,
  type: string,
  body: Record<string, unknown>,
): Promise<void> => {
  const part = body[type]
  if (part === undefined) throw parameterRequired(type)
  if (type === 'contacts') return checkContacts(part)
  if (!isObject(part)) throw badParameterValue(`Param ${type} must be a JSON object.`)
  await checks[type]!(call, part)
}
