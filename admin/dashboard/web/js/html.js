/**
 * The only import of the vendored view library (Preact with htm, see vendor/). All output passes through its text nodes
 * and attributes, which escape it. No code of the dashboard sets HTML from text.
 */
export {
  h, html, render, createContext,
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from '../vendor/htm-preact-3.1.1.js';
