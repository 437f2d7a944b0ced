import type { ConfirmVerb, Effect, Operation } from '../catalog/operation.ts'

/** Whether an operation destroys data, and whether others see its effect: two of the protocol's tool annotations. */
type WriteHints = { destructiveHint: boolean; openWorldHint: boolean }

/** The protocol calls only additions safe. */
const effectHints: Readonly<Record<Effect, WriteHints>> = {
  adds: { destructiveHint: false, openWorldHint: false },
  replaces: { destructiveHint: true, openWorldHint: false },
  sends: { destructiveHint: false, openWorldHint: true },
  replaces_and_sends: { destructiveHint: true, openWorldHint: true },
}

const verbEffects: Readonly<Record<ConfirmVerb, Effect>> = {
  submit: 'sends',
  rotate: 'replaces',
  delete: 'replaces',
  erase: 'replaces',
  archive: 'replaces',
  send: 'sends',
}

/** Returns the hints of a change, by its `effect` or its confirm verb, of which each change declares one. */
export const getWriteHints = ({ effect, confirm }: Operation): WriteHints =>
  effectHints[effect ?? verbEffects[confirm!]]
